"""First calls after a pause, measured on request: their settings and checks."""

from typing import Any

from tightrope.errors import ConfigError, nearest
from tightrope.plan.goal_checks import in_words
from tightrope.plan.hosts import asked_by_name
from tightrope.plan.shapes import shapes_of
from tightrope.variants import Variant

Document = dict[str, Any]
Jobs = list[tuple[str, Variant]]


def requested(config: Document, key: str, jobs: Jobs) -> Jobs:
    """Return the jobs of the variants that this key of the configuration names."""
    return asked_by_name(jobs, config[key]["variants"])


def idleness_settings(config: Document, wildcards: Any) -> Document:
    """Return the settings for a job.

    Without its variants, because adding one changes no other job, and without the shape.
    """
    other = ("variants", "shape")
    return {name: value for name, value in config["idleness"].items() if name not in other}


def idleness_shape(config: Document, wildcards: Any) -> dict[str, int]:
    """Return the shape that is named, or the first of a model that is not measured at it."""
    known = shapes_of(config, wildcards.model)
    asked = config["idleness"]["shape"]
    return asked if asked in known else known[0]


def check_idleness(config: Document) -> None:
    """A named shape must be one of `shapes`."""
    known = [one for model in config["models"] for one in shapes_of(config, model)]
    names = list(dict.fromkeys(map(in_words, known)))
    shape = config["idleness"]["shape"]
    if shape is not None and shape not in known:
        raise ConfigError(
            f"config: idleness.shape = {in_words(shape)}: not measured"
            f"{nearest(in_words(shape), names)}; shapes has {', '.join(names)}"
        )
