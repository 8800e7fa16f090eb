"""Digests of each job's code, including what its model and variant load by name.

`scripts` is the folder of the scripts. What is loaded by name appears in no import statement.
"""

from collections.abc import Callable, Iterable
from typing import Any

from tightrope.artifacts.provenance import code_digest
from tightrope.checkpoint import source as checkpoint_source
from tightrope.data import source as data_sources
from tightrope.plan.distillation import own_request
from tightrope.training.recipe import QUANTIZATION_AWARE
from tightrope.variants import parse

Document = dict[str, Any]

# scripts that build engines besides timing them
BUILDING = ("build_engine.py", "choose_structure.py", "measure_structures.py", "verify_causes.py")


def build_code(scripts: str, engine: str) -> str:
    """Return the digest for the job that builds variants of an engine."""
    return code_digest(scripts, "build_engine.py", f"tightrope/engines/{engine}.py:build")


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


def study_code(scripts: str, study: str, wildcards: Any) -> str:
    """Return the digest of what measures a study of the variant, with its engine."""
    load = f"tightrope/engines/{parse(wildcards.variant).engine}.py:load"
    measure = [f"tightrope/studies/{study}.py:{name}" for name in ("measure", "Settings")]
    return code_digest(scripts, "measure_study.py", *measure, load)


def variants_code(
    scripts: str, script: str, variants_of: Callable[[Any], Iterable[str]], wildcards: Any
) -> str:
    """Return the digest of a script and of the engines of the variants that it loads."""
    engines = sorted({parse(variant).engine for variant in variants_of(wildcards)})
    functions = ("build", "load") if script in BUILDING else ("load",)
    entries = [f"tightrope/engines/{one}.py:{name}" for one in engines for name in functions]
    return code_digest(scripts, script, *entries)
