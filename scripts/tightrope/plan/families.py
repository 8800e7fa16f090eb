"""Models that are made from other models of the configuration, or differ only in the activation."""

import json

from tightrope.config.parents import ancestors
from tightrope.plan.hosts import Document, Jobs

# a model that starts from none, and a place
Family = tuple[str, str]
# settings of a model that decide which examples are in which split
OF_DATA = ("task", "data", "images", "columns", "splits", "seed")


def families(config: Document, jobs: Jobs) -> dict[Family, list[str]]:
    """Return the models that have jobs at a place, by the model that all of them are made from.

    Each model comes before those that start from it or learn from it. Only families of at least
    two models.
    """
    children: dict[str | None, list[str]] = {}
    for name, model in config["models"].items():
        parent = next(iter(ancestors(model).values()), None)
        children.setdefault(parent, []).append(name)
    places: dict[str, list[str]] = {name: [] for name in config["models"]}
    for model, place in dict.fromkeys((model, variant.place) for model, variant in jobs):
        places[model].append(place)
    found: dict[Family, list[str]] = {}
    for root in children.get(None, ()):
        for model in with_children(root, children):
            for place in places[model]:
                found.setdefault((root, place), []).append(model)
    return {family: models for family, models in found.items() if len(models) > 1}


def with_children(model: str, children: dict[str | None, list[str]]) -> list[str]:
    """Return the model, and after each model those that are made from it, in their order."""
    own = children.get(model, ())
    return [model, *(name for child in own for name in with_children(child, children))]


def references(config: Document) -> dict[str, str]:
    """Map each model to its reference, the model that differs from it only in `activation`.

    That is the first of them with the checkpoint's own activation, else the first of all. It has no
    entry, nor has a model with the same activation.
    """
    models = config["models"]
    alike: dict[str, list[str]] = {}
    for name, model in models.items():
        others = {key: value for key, value in model.items() if key != "activation"}
        alike.setdefault(json.dumps(others, sort_keys=True), []).append(name)
    found: dict[str, str] = {}
    for names in alike.values():
        first = next((name for name in names if models[name]["activation"] is None), names[0])
        found |= {
            one: first for one in names if models[one]["activation"] != models[first]["activation"]
        }
    return found


def compared(config: Document, jobs: Jobs) -> Jobs:
    """Return the jobs whose model has a reference with a job for the same variant."""
    reference, planned = references(config), set(jobs)
    return [
        (model, variant)
        for model, variant in jobs
        if model in reference and (reference[model], variant) in planned
    ]
