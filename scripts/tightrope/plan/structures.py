"""Models that are pruned to a target: which structures are measured, and with which engine."""

from typing import Any

from tightrope.artifacts.provenance import library_versions
from tightrope.plan.code import code_with_engines
from tightrope.plan.config import Document
from tightrope.plan.job_inputs import from_checkpoint
from tightrope.plan.job_params import engine_libraries, engine_options
from tightrope.plan.plan import Plan
from tightrope.plan.targets import (
    AUTO,
    HEADS,
    SIZES,
    chooses_heads,
    engine_of,
    is_targeted,
    shape_of,
    speedup_of,
    table_name,
)
from tightrope.signature import BATCH, SEQUENCE

# libraries that shape the ONNX file of a structure
EXPORT = ("torch", "transformers", "onnx", "onnxscript", "onnxslim")


def prune_of_model(config: Document, wildcards: Any) -> Document:
    """Return the sizes that `prune` gives, without the keys of a target; `heads` where asked."""
    prune = config["models"][wildcards.model]["prune"]
    given = {name: None if prune[name] == AUTO else prune[name] for name in SIZES}
    return {name: size for name, size in given.items() if name != HEADS or size is not None}


def structure_of_model(config: Document, wildcards: Any) -> dict[str, str]:
    """Return the chosen structure as an input, where the model is pruned to a target."""
    targeted = is_targeted(config["models"][wildcards.model])
    return {"structure": f"artifacts/{wildcards.model}/structure.json"} if targeted else {}


def structure_inputs(config: Document, wildcards: Any) -> dict[str, str]:
    """Return the inputs of the choice for a target of latency: what is measured of the parent."""
    model = config["models"][wildcards.model]
    if speedup_of(model) is None:
        return {}
    folder = f"artifacts/{model['from']}"
    return {
        "table": f"{folder}/structures/{table_name(config, wildcards.model)}.json",
        "checkpoint": f"{folder}/checkpoint/checkpoint.json",
        "timing": f"{folder}/splits/timing.json",
    }


def asked_of_model(config: Document, wildcards: Any) -> Document:
    """Return what a model is pruned to: `speedup` or `parameters`, and `heads` if these may go."""
    model = config["models"][wildcards.model]
    speedup = speedup_of(model)
    heads = {HEADS: True} if chooses_heads(model) else {}
    if speedup is None:
        return {"parameters": model["prune"]["parameters"], **heads}
    return {"speedup": speedup, **heads}


def engine_of_model(config: Document, wildcards: Any) -> Document | None:
    """Return the engine that a model's target is measured with, None for one of parameters."""
    if speedup_of(config["models"][wildcards.model]) is None:
        return None
    return timed_engine(config, wildcards.model)


def engine_of_table(config: Document, wildcards: Any) -> Document:
    """Return the engine of a table of latencies, named by `structures` of the wildcards."""
    return timed_engine(config, model_of_table(config, wildcards))


def model_of_table(config: Document, wildcards: Any) -> str:
    """Return the first model whose target reads the table of its parent."""
    return next(
        name
        for name, model in config["models"].items()
        if model["from"] == wildcards.model
        and speedup_of(model) is not None
        and table_name(config, name) == wildcards.structures
    )


def timed_engine(config: Document, model: str) -> Document:
    """Return variant, options, source and shape of the engine that structures are timed with.

    It has one program for that shape. `heads` where structures have fewer of them too.
    """
    variant, shape = engine_of(config["models"][model]), shape_of(config, model)
    names = Names(model, variant.device, variant.precision)
    options = engine_options(config, variant.engine, names)
    if options.get("buckets"):
        axes = [axis for axis in (BATCH, SEQUENCE) if axis in shape]
        options["buckets"] = {axis: [shape[axis]] for axis in axes}
    source = "checkpoint" if from_checkpoint(config, variant.engine) else "onnx"
    heads = {HEADS: True} if chooses_heads(config["models"][model]) else {}
    return {"variant": str(variant), "options": options, "source": source, "shape": shape, **heads}


class Names:
    """Wildcards of the rule that builds a variant."""

    def __init__(self, model: str, device: str, rest: str) -> None:
        self.model, self.device, self.rest = model, device, rest


def structures_code(scripts: str, config: Document, wildcards: Any) -> str:
    """Return the digest for the job that measures the structures of a model, with its engine."""
    variant = engine_of_table(config, wildcards)["variant"]
    return code_with_engines(scripts, "measure_structures.py", variant)


def choice_code(scripts: str, config: Document, wildcards: Any) -> str:
    """Return the digest for the job that chooses a structure, with the engine that times it."""
    engine = engine_of_model(config, wildcards)
    variants = [engine["variant"]] if engine else []
    return code_with_engines(scripts, "choose_structure.py", *variants)


def table_libraries(config: Document, wildcards: Any) -> dict[str, str | None]:
    """Return installed versions of what shapes and runs the engines of a table."""
    variant = engine_of_table(config, wildcards)["variant"]
    return library_versions(*EXPORT) | engine_libraries(variant)


def choice_libraries(config: Document, wildcards: Any) -> dict[str, str | None]:
    """Return installed versions of what judges importance, and of what shapes and runs engines."""
    engine = engine_of_model(config, wildcards)
    if engine is None:
        return library_versions("torch", "transformers")
    return library_versions(*EXPORT) | engine_libraries(engine["variant"])


def host_of_choice(plan: Plan, config: Document, wildcards: Any) -> str | None:
    """Return the host key of a choice that is measured, None for one by parameters."""
    measured = engine_of_model(config, wildcards) is not None
    return plan.host["cpu"] if measured else None
