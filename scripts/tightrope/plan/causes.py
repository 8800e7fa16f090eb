"""Jobs that build the engine of a variant without a cause: inputs and libraries of its build."""

from types import SimpleNamespace
from typing import Any

from tightrope.artifacts.provenance import library_versions
from tightrope.plan.job_inputs import engine_inputs
from tightrope.plan.job_params import accuracy_libraries, libraries_of
from tightrope.records.profile import PREFIX
from tightrope.variants import parse

Document = dict[str, Any]


def of_build_rule(wildcards: Any) -> tuple[str, SimpleNamespace]:
    """Return the engine of a variant, and the wildcards of the rule that builds it."""
    variant = parse(wildcards.variant)
    names = SimpleNamespace(model=wildcards.model, device=variant.place, rest=variant.rest)
    return variant.engine, names


def build_inputs(config: Document, wildcards: Any) -> dict[str, str]:
    """Return the inputs of the build of a variant, their names with a prefix."""
    found = engine_inputs(config, *of_build_rule(wildcards))
    return {f"{PREFIX}{name}": path for name, path in found.items()}


def build_libraries(config: Document, wildcards: Any) -> dict[str, str | None]:
    """Return installed versions of what shapes and runs the engine of a variant."""
    engine, _ = of_build_rule(wildcards)
    return library_versions(*libraries_of(config, engine)) | accuracy_libraries(wildcards)
