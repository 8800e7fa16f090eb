"""Models that are searched for within an accuracy budget."""

from typing import Any

from tightrope.plan.code import code_with_engines
from tightrope.plan.config import Document
from tightrope.plan.distillation import taught_inputs
from tightrope.plan.job_inputs import encoding_libraries, scheme_of
from tightrope.plan.job_params import engine_libraries, engine_options
from tightrope.plan.plan import Plan
from tightrope.plan.structures import EXPORT, Names
from tightrope.plan.targets import shape_of, table_name
from tightrope.variants import Variant, baseline, parse

# the statistics that the rungs are quantized with
METHOD = "minmax"


def searched(config: Document) -> list[str]:
    """Return the models that are searched for."""
    return [name for name, model in config["models"].items() if model["compress"]]


def compress_inputs(config: Document, plan: Plan, wildcards: Any) -> dict[str, str]:
    """Return the inputs of a search: the parent as it is trained, built and measured."""
    name = wildcards.model
    parent, folder = config["models"][name]["from"], f"artifacts/{name}"
    above = f"artifacts/{parent}"
    engine = plan.baselines[parent]["cpu"]
    return {
        **taught_inputs(config, wildcards),
        "source": f"{folder}/source/checkpoint.json",
        "train": f"{folder}/splits/train.json",
        "calibration": f"{folder}/splits/calibration.json",
        "timing": f"{folder}/splits/timing.json",
        "parent": f"{above}/checkpoint/checkpoint.json",
        "baseline": f"{above}/engines/{engine}/engine.json",
        "table": f"{above}/structures/{table_name(config, name)}.json",
    }


def compress_recipe(config: Document, wildcards: Any) -> Document:
    """Return how the models of a search are trained and built, and what they are asked for."""
    model = config["models"][wildcards.model]
    asked, variant = model["compress"], variant_of(config, wildcards.model)
    named = Names(wildcards.model, variant.device, variant.rest)
    budget = asked["budget_points"]
    return {
        "target": float(asked["target"].removesuffix("x")),
        "budget": (config["accuracy_budget_points"] if budget is None else budget) / 100,
        "seconds": 60.0 * asked["minutes"],
        "shape": shape_of(config, wildcards.model),
        "variant": str(variant),
        "options": engine_options(config, variant.engine, named),
        "scheme": scheme_of(config, variant),
        "method": METHOD,
        "samples": config["calibration"]["samples"][0],
    }


def variant_of(config: Document, model: str) -> Variant:
    """Return the variant that the models of a search are built as."""
    name = f"cpu-{config['models'][model]['compress']['engine']}"
    samples = config["calibration"]["samples"][0]
    return parse(f"{name}-{METHOD}-{samples}" if name.endswith("int8") else name)


def compress_code(scripts: str, config: Document, wildcards: Any) -> str:
    """Return the digest for the job that searches, with its engine and the baseline's."""
    variants = str(variant_of(config, wildcards.model)), str(baseline("cpu", ""))
    return code_with_engines(scripts, "search_compression.py", *variants)


def compress_libraries(config: Document, wildcards: Any) -> dict[str, str | None]:
    """Return installed versions of what trains, shapes and runs the models of a search."""
    variant = str(variant_of(config, wildcards.model))
    return encoding_libraries(config, EXPORT, wildcards) | engine_libraries(variant)
