"""How stable a variant's latency is, measured on request: jobs, settings and checks."""

from typing import Any

from tightrope.errors import ConfigError, nearest
from tightrope.plan.goal_checks import in_words
from tightrope.plan.hosts import asked_by_name
from tightrope.plan.shapes import shapes_of
from tightrope.variants import Variant

Document = dict[str, Any]
Jobs = list[tuple[str, Variant]]
# keys of the configuration with variants and a shape
KEYS = ("idleness", "builds")


def requested(config: Document, key: str, jobs: Jobs) -> Jobs:
    """Return the jobs of the variants that this key of the configuration names."""
    return asked_by_name(jobs, config[key]["variants"])


def stability_settings(config: Document, key: str, wildcards: Any) -> Document:
    """Return the settings of the key for a job.

    Without its variants, because adding one changes no other job, and without the shape.
    """
    other = ("variants", "shape")
    return {name: value for name, value in config[key].items() if name not in other}


def stability_shape(config: Document, key: str, wildcards: Any) -> dict[str, int]:
    """Return the shape that the key names, or the first of a model that is not measured at it."""
    known = shapes_of(config, wildcards.model)
    asked = config[key]["shape"]
    return asked if asked in known else known[0]


def check_stability(config: Document) -> None:
    """A named shape must be one of `shapes`."""
    known = [one for model in config["models"] for one in shapes_of(config, model)]
    names = list(dict.fromkeys(map(in_words, known)))
    for key in KEYS:
        shape = config[key]["shape"]
        if shape is not None and shape not in known:
            raise ConfigError(
                f"config: {key}.shape = {in_words(shape)}: not measured"
                f"{nearest(in_words(shape), names)}; shapes has {', '.join(names)}"
            )
