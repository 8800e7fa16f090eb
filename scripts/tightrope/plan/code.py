"""Digests of each job's code, with the modules that its model and variant load by name.

`scripts` is the folder of the scripts. A module that is loaded by name is in no import statement.
"""

from typing import Any

from tightrope.artifacts.provenance import code_digest
from tightrope.checkpoint import source as checkpoint_source
from tightrope.data import source as data_sources
from tightrope.plan.config import Document
from tightrope.plan.plan import Plan, baseline_of, raced
from tightrope.variants import parse


def engine_modules(*variants: str) -> list[str]:
    """Source files of the engines of these variants."""
    engines = {parse(variant).engine for variant in variants}
    return [f"tightrope/engines/{engine}.py" for engine in sorted(engines)]


def build_code(scripts: str, engine: str) -> str:
    """Of the job that builds variants of that engine."""
    return code_digest(scripts, "build_engine.py", f"tightrope/engines/{engine}.py")


def data_code(scripts: str, config: Document, wildcards: Any) -> str:
    """Of the job that prepares a model's data, with their kind of source."""
    model = config["models"][wildcards.model]
    modules = data_sources.modules(model["data"], task=model["task"])
    return code_digest(scripts, "prepare_data.py", *modules)


def checkpoint_code(scripts: str, config: Document, wildcards: Any) -> str:
    """Of the job that prepares a model's checkpoint, with its kind of source."""
    modules = checkpoint_source.modules(config["models"][wildcards.model]["checkpoint"])
    return code_digest(scripts, "prepare_checkpoint.py", *modules)


def training_code(scripts: str, config: Document, wildcards: Any) -> str:
    """Of the job that trains a model, or keeps a checkpoint that is not trained."""
    modules = checkpoint_source.keeper_modules(config["models"][wildcards.model]["checkpoint"])
    return code_digest(scripts, "train_model.py", *modules)


def variant_code(scripts: str, script: str, wildcards: Any) -> str:
    """Of a job that runs a variant alone, with its engine."""
    return code_digest(scripts, script, *engine_modules(wildcards.variant))


def latency_code(scripts: str, plan: Plan, wildcards: Any) -> str:
    """Of the job that times a variant beside its baseline, with both engines."""
    modules = engine_modules(wildcards.variant, baseline_of(plan, wildcards))
    return code_digest(scripts, "measure_latency.py", *modules)


def race_code(scripts: str, plan: Plan, wildcards: Any) -> str:
    """Of the race of a model on a device, with all of its engines there."""
    modules = engine_modules(*raced(plan, "{variant}", wildcards))
    return code_digest(scripts, "race_finalists.py", *modules)
