"""Jobs of rules as the plan has them, without Snakemake."""

from typing import Any

from tightrope.plan.job import Job
from tightrope.plan.location import Location


def job_of(config: dict[str, Any], plan: Any = None, **names: str) -> Job:
    """The job with these wildcards."""
    return Job(config, plan, Location("."), None, names)
