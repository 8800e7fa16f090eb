"""Digests of each job's code, including the modules that its model and variant load by name.

`scripts` is the folder of the scripts. Modules loaded by name appear in no import statement.
"""

from typing import Any

from tightrope.artifacts.provenance import code_digest
from tightrope.checkpoint import source as checkpoint_source
from tightrope.data import source as data_sources
from tightrope.plan.config import Document
from tightrope.plan.distillation import own_request
from tightrope.plan.plan import Plan, baseline_of, raced
from tightrope.training.recipe import QUANTIZATION_AWARE
from tightrope.variants import parse


def engine_modules(*variants: str) -> list[str]:
    """Return the source files of the engines of these variants."""
    engines = {parse(variant).engine for variant in variants}
    return [f"tightrope/engines/{engine}.py" for engine in sorted(engines)]


def build_code(scripts: str, engine: str) -> str:
    """Return the digest for the job that builds variants of an engine."""
    return code_digest(scripts, "build_engine.py", f"tightrope/engines/{engine}.py")


def data_code(scripts: str, config: Document, wildcards: Any) -> str:
    """Return the digest for the job that prepares a model's data, with its source module."""
    model = config["models"][wildcards.model]
    modules = data_sources.modules(model["data"], task=model["task"])
    return code_digest(scripts, "prepare_data.py", *modules)


def checkpoint_code(scripts: str, config: Document, wildcards: Any) -> str:
    """Return the digest for the job that prepares a model's checkpoint, with its source module."""
    modules = checkpoint_source.modules(config["models"][wildcards.model]["checkpoint"])
    return code_digest(scripts, "prepare_checkpoint.py", *modules)


def training_code(scripts: str, config: Document, wildcards: Any) -> str:
    """Return the digest for the job that trains a model, or keeps an untrained checkpoint."""
    model = config["models"][wildcards.model]
    modules = checkpoint_source.importer_modules(model["checkpoint"])
    if model.get("qat"):
        modules = [*modules, f"{QUANTIZATION_AWARE}.py"]
    return code_digest(scripts, "train_model.py", *modules)


def teacher_code(scripts: str, config: Document, wildcards: Any) -> str:
    """Return the digest for the job that runs a teacher, with the module of unlabelled texts."""
    source = own_request(config, wildcards).get("unlabelled")
    modules = data_sources.modules(source) if source else []
    return code_digest(scripts, "run_teacher.py", *modules)


def variant_code(scripts: str, script: str, wildcards: Any) -> str:
    """Return the digest for a job that runs a single variant, with its engine."""
    return code_digest(scripts, script, *engine_modules(wildcards.variant))


def latency_code(scripts: str, plan: Plan, wildcards: Any) -> str:
    """Return the digest for the job that times a variant paired with its baseline."""
    modules = engine_modules(wildcards.variant, baseline_of(plan, wildcards))
    return code_digest(scripts, "measure_latency.py", *modules)


def cascade_code(scripts: str, plan: Plan, wildcards: Any) -> str:
    """Return the digest for the job that measures a cascade, with both its engines."""
    variants = [str(variant) for _, variant in plan.cascades[wildcards.cascade]]
    return code_digest(scripts, "measure_cascade.py", *engine_modules(*variants))


def race_code(scripts: str, plan: Plan, wildcards: Any) -> str:
    """Return the digest for the race of a model on a device, with all its engines."""
    modules = engine_modules(*raced(plan, "{variant}", wildcards))
    return code_digest(scripts, "race_finalists.py", *modules)
