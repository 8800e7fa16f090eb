"""Models that are made from other models of the configuration, or differ only in the activation."""

import json
from typing import Any

from tightrope.errors import ConfigError, nearest
from tightrope.plan.hosts import Document, Jobs
from tightrope.variants import is_onnx

# a model that starts from none, and a place
Family = tuple[str, str]
FROM, TEACHER, KIND = "from", "distill.from", "model"
# keys that a model takes from its parent, else from its teacher, unless it has them itself
INHERITED = ("task", "data", "images", "columns", "splits", "max_sequence", "seed")
# settings of a model that decide which examples are in which split
OF_DATA = ("task", "data", "images", "columns", "splits", "seed")


def with_parents(config: Document) -> Document:
    """Return the configuration with what models inherit from those that they start `from`.

    Their checkpoint is `model:PARENT`. A model that learns from another one without starting from
    it has the data of its teacher. Raises ConfigError for an unknown parent or teacher, one that
    is an ONNX file, a cycle, and a model with a checkpoint of its own besides.
    """
    models = config.get("models")
    if not isinstance(models, dict):
        return config  # the schema says what is wrong
    return {**config, "models": {name: derived(name, models) for name in models}}


def ancestors(model: Any) -> dict[str, Any]:
    """Return the models that a model is made from, by the key that names them."""
    if not isinstance(model, dict):
        return {}
    distill = model.get("distill")
    teacher = distill.get(FROM) if isinstance(distill, dict) else None
    found = {FROM: model.get(FROM), TEACHER: teacher}
    return {key: name for key, name in found.items() if name is not None}


def derived(name: str, models: Document, children: tuple[str, ...] = ()) -> Any:
    """Return a model with what it inherits; `children` are those that are made from it."""
    model, above = models[name], {}
    for key, parent in ancestors(model).items():
        require_parent(name, key, parent, models, (*children, name))
        above[key] = derived(parent, models, (*children, name))
        if isinstance(above[key], dict) and is_onnx(str(above[key].get("checkpoint"))):
            raise ConfigError(
                f"config: models.{name}.{key} = {parent}: that model is an ONNX file; start from "
                "its checkpoint"
            )
    kind, _, parent = str(model.get("checkpoint") if isinstance(model, dict) else "").partition(":")
    if kind == KIND and FROM not in above:
        raise ConfigError(
            f"config: models.{name}.checkpoint = {kind}:{parent}: write {FROM}: {parent} in its "
            "place, which also takes that model's data"
        )
    source = above.get(FROM, above.get(TEACHER))
    if not isinstance(source, dict):
        return model
    taken = {key: source[key] for key in INHERITED if key in source}
    if FROM in above:
        return {**taken, **model, "checkpoint": f"{KIND}:{model[FROM]}"}
    return model if "data" in model else {**taken, **model}


def require_parent(
    name: str, key: str, parent: Any, models: Document, children: tuple[str, ...]
) -> None:
    """Raise ConfigError unless `parent` is a model, and none of `children`, made from it."""
    place = f"config: models.{name}.{key} = {parent}"
    if not isinstance(parent, str):
        raise ConfigError(f"{place}: not the name of a model")
    if parent not in models:
        names = [one for one in models if one != name]
        raise ConfigError(f"{place}: no model of that name{nearest(str(parent), names)}")
    if parent in children:
        cycle = " from ".join((*children[children.index(parent) :], parent))
        cycle = cycle if len(children) > 1 else name
        raise ConfigError(f"{place}: a model cannot start from itself ({cycle})")
    if key == FROM and "checkpoint" in models[name]:
        raise ConfigError(f"{place}: it starts from that model's checkpoint; remove checkpoint")


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
