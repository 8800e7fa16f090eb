"""Targets of pruning: what they ask for, the engine and the shape that they are about."""

from typing import Any

from tightrope.errors import ConfigError
from tightrope.plan.derived import FROM
from tightrope.plan.planned_on import planning_host
from tightrope.plan.shapes import OF_IMAGES, OF_TEXTS, TOKENS, is_of_images, shapes_of
from tightrope.plan.variants import only_emulated
from tightrope.signature import BATCH
from tightrope.variants import Variant, parse

Document = dict[str, Any]
DEFAULT_ENGINE = "onnxruntime-fp32"
AIMS, OF_SPEEDUP, HEADS = ("target", "parameters"), ("at", "engine"), "heads"
SIZES = ("layers", "intermediate", HEADS)
# of HEADS: a target chooses them too
AUTO = "auto"


def is_targeted(model: Document) -> bool:
    """Return whether a model is pruned to a target, not to given sizes."""
    return any(model["prune"][aim] is not None for aim in AIMS)


def speedup_of(model: Document) -> float | None:
    """Return the speed-up over its parent that a model is pruned to, None without one."""
    target = model["prune"]["target"]
    return float(target.removesuffix("x")) if target is not None else None


def chooses_heads(model: Document) -> bool:
    """Return whether a target of a model chooses its attention heads too."""
    return bool(model["prune"][HEADS] == AUTO)


def engine_of(model: Document) -> Variant:
    """Return the variant that a model's target of speed is measured with, in float."""
    return parse(f"cpu-{model['prune']['engine'] or DEFAULT_ENGINE}")


def shape_of(config: Document, model: str) -> dict[str, int]:
    """Return the shape at which a model's target of speed is measured."""
    return dict(config["models"][model]["prune"]["at"] or shapes_of(config, model)[0])


def table_name(config: Document, model: str) -> str:
    """Return the name of the table of latencies that a model's target reads."""
    variant, shape = engine_of(config["models"][model]), shape_of(config, model)
    axes = (BATCH, *OF_TEXTS, TOKENS, *OF_IMAGES)
    sizes = "x".join(str(shape[axis]) for axis in axes if axis in shape)
    heads = f"-{HEADS}" if chooses_heads(config["models"][model]) else ""
    return f"{variant.engine}-{variant.precision}-{sizes}{heads}"


def check_targets(config: Document) -> None:
    """A target needs a trained parent, no sizes besides, and an engine that runs here."""
    for name, model in config["models"].items():
        place, prune = f"config: models.{name}.prune", model["prune"]
        asked = [key for key in AIMS if prune[key] is not None]
        if len(asked) > 1:
            raise ConfigError(f"{place}: has {' and '.join(asked)}; give one of them")
        for key in OF_SPEEDUP:
            if prune[key] is not None and prune["target"] is None:
                raise ConfigError(f"{place}.{key}: only for prune.target; remove it, or add one")
        if chooses_heads(model) and not asked:
            raise ConfigError(f"{place}.{HEADS} = {AUTO}: only for a target; say how many to keep")
        for key in SIZES:
            if asked and prune[key] not in (None, AUTO):
                raise ConfigError(
                    f"{place}: has {asked[0]}, which chooses the sizes, and {key}; remove one"
                )
        if asked and model[FROM] is None:
            raise ConfigError(
                f"{place}.{asked[0]}: what is important is judged on a trained classifier; start "
                "from one of models (from: NAME)"
            )
        if prune["target"] is not None:
            check_speedup(config, name)


def check_speedup(config: Document, name: str) -> None:
    """A target of speed must be above 1, at a shape of the model's kind, with an engine for it."""
    model, place = config["models"][name], f"config: models.{name}.prune"
    speedup, target, shape = speedup_of(model), model["prune"]["target"], model["prune"]["at"]
    if speedup is not None and speedup <= 1:
        raise ConfigError(f"{place}.target = {target}: must be above 1x, the speed of the parent")
    kinds = (
        (set(OF_IMAGES),) if is_of_images(config, name) else (set(OF_TEXTS), {*OF_TEXTS, TOKENS})
    )
    if shape is not None and set(shape) - {BATCH} not in kinds:
        raise ConfigError(
            f"{place}.at = {shape}: a shape of {model['task']} has {BATCH} and "
            f"{' and '.join(sorted(kinds[0]))}"
        )
    if reason := only_emulated(config, engine_of(model), planning_host()):
        raise ConfigError(f"{place}.engine = {model['prune']['engine']}: {reason}; take another")
