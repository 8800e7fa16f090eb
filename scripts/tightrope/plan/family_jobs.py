"""Code and libraries of the jobs that time a family."""

from typing import Any

from tightrope.plan.code import code_with_engines
from tightrope.plan.families import Children, Variants, of_variants
from tightrope.plan.job_params import engine_libraries


def family_code(scripts: str, children: Children, variants: Variants, wildcards: Any) -> str:
    """Return the digest of the job, with the engines of all variants of the family."""
    names = of_variants(children, variants, "{variant}", wildcards)
    return code_with_engines(scripts, "race_family.py", *names)


def family_libraries(
    children: Children, variants: Variants, wildcards: Any
) -> dict[str, str | None]:
    """Return installed versions of the runtimes of all variants of the family."""
    return engine_libraries(*of_variants(children, variants, "{variant}", wildcards))
