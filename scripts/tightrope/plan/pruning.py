"""Models that are pruned: to given sizes, or to a target of speed or parameters."""

from tightrope.config.parents import FROM
from tightrope.errors import ConfigError
from tightrope.plan.hosts import Document, planning_host
from tightrope.plan.job_inputs import from_checkpoint
from tightrope.plan.job_params import engine_options
from tightrope.plan.shapes import OF_IMAGES, OF_TEXTS, TOKENS, is_of_images, shapes_of
from tightrope.plan.variants import only_emulated
from tightrope.signature import BATCH, SEQUENCE
from tightrope.variants import Variant, parse

DEFAULT_ENGINE = "onnxruntime-fp32"
AIMS, OF_SPEEDUP, HEADS = ("target", "parameters"), ("at", "engine"), "heads"
SIZES = ("layers", "intermediate", HEADS)
# of HEADS: a target chooses them too
AUTO = "auto"


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


def prune_of_model(config: Document, model: str) -> Document:
    """Return the sizes that `prune` gives, without the keys of a target; `heads` where asked."""
    prune = config["models"][model]["prune"]
    given = {name: None if prune[name] == AUTO else prune[name] for name in SIZES}
    return {name: size for name, size in given.items() if name != HEADS or size is not None}


def structure_of_model(config: Document, model: str) -> dict[str, str]:
    """Return the chosen structure as an input, where the model is pruned to a target."""
    prune = config["models"][model]["prune"]
    targeted = any(prune[aim] is not None for aim in AIMS)
    return {"structure": f"artifacts/{model}/structure.json"} if targeted else {}


def structure_inputs(config: Document, name: str) -> dict[str, str]:
    """Return the inputs of the choice for a target of latency: what is measured of the parent."""
    model = config["models"][name]
    if speedup_of(model) is None:
        return {}
    folder = f"artifacts/{model['from']}"
    return {
        "table": f"{folder}/structures/{table_name(config, name)}.json",
        "checkpoint": f"{folder}/checkpoint/checkpoint.json",
        "timing": f"{folder}/splits/timing.json",
    }


def asked_of_model(config: Document, name: str) -> Document:
    """Return what a model is pruned to: `speedup` or `parameters`, and `heads` if these may go."""
    model = config["models"][name]
    speedup = speedup_of(model)
    heads = {HEADS: True} if chooses_heads(model) else {}
    aim = {"parameters": model["prune"]["parameters"]} if speedup is None else {"speedup": speedup}
    return aim | heads


def engine_of_choice(config: Document, model: str) -> Document | None:
    """Return the engine that a model's target is measured with, None for one of parameters."""
    aims_at_speed = speedup_of(config["models"][model]) is not None
    return timed_engine(config, model) if aims_at_speed else None


def engine_of_table(config: Document, parent: str, table: str) -> Document:
    """Return the engine of a table of latencies: that of the first model whose target reads it."""
    return next(
        timed_engine(config, name)
        for name, model in config["models"].items()
        if model["from"] == parent
        and speedup_of(model) is not None
        and table_name(config, name) == table
    )


def timed_engine(config: Document, model: str) -> Document:
    """Return variant, options, source and shape of the engine that structures are timed with.

    It has one program for that shape. `heads` where structures have fewer of them too.
    """
    variant, shape = engine_of(config["models"][model]), shape_of(config, model)
    options = engine_options(config, model, variant)
    if options.get("buckets"):
        axes = [axis for axis in (BATCH, SEQUENCE) if axis in shape]
        options["buckets"] = {axis: [shape[axis]] for axis in axes}
    source = "checkpoint" if from_checkpoint(config, variant.engine) else "onnx"
    heads = {HEADS: True} if chooses_heads(config["models"][model]) else {}
    return {"variant": str(variant), "options": options, "source": source, "shape": shape, **heads}
