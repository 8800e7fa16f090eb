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


def loading_code(
    scripts: str,
    config: Document,
    script: str,
    modules_of: Callable[[Document, Any], Iterable[str]],
    wildcards: Any,
) -> str:
    """Return the digest of a script and of the modules that the job loads by name."""
    return code_digest(scripts, script, *modules_of(config, wildcards))


def data_modules(config: Document, wildcards: Any) -> list[str]:
    """Return the source module of a model's data."""
    model = config["models"][wildcards.model]
    return data_sources.modules(model["data"], task=model["task"])


def checkpoint_modules(config: Document, wildcards: Any) -> list[str]:
    """Return the source module of a model's checkpoint."""
    return checkpoint_source.modules(config["models"][wildcards.model]["checkpoint"])


def training_modules(config: Document, wildcards: Any) -> list[str]:
    """Return the modules of the job that trains a model, or keeps an untrained checkpoint."""
    model = config["models"][wildcards.model]
    learnt = [f"{QUANTIZATION_AWARE}.py"] if model.get("qat") else []
    return [*checkpoint_source.importer_modules(model["checkpoint"]), *learnt]


def teacher_modules(config: Document, wildcards: Any) -> list[str]:
    """Return the source module of the unlabelled texts of a teacher."""
    source = own_request(config, wildcards).get("unlabelled")
    return data_sources.modules(source) if source else []


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
