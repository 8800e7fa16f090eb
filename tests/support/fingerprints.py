"""Snakemake's rules and jobs of a project in this process, without running any job."""

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from snakemake.api import SnakemakeApi
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    OutputSettings,
    Quietness,
    RerunTrigger,
    ResourceSettings,
)

COMMAND = ["snakemake", "--dry-run", "--cores", "2"]


@contextmanager
def planned(folder: Path) -> Iterator[Any]:
    """Snakemake's workflow of the project in this folder, planned as if nothing were made yet."""
    quiet = OutputSettings(quiet={Quietness.ALL})
    # a Snakefile sets variables for the processes of its jobs
    kept = patch.dict(os.environ)
    with kept, chdir(folder), patch.object(sys, "argv", COMMAND), SnakemakeApi(quiet) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=2),
            config_settings=ConfigSettings(configfiles=[Path("config/config.yaml")]),
            snakefile=folder / "Snakefile",
            workdir=folder,
        )
        triggers = {RerunTrigger.PARAMS}
        dag = workflow.dag(DAGSettings(forceall=True, rerun_triggers=triggers))
        dag.execute_workflow(executor="dryrun")
        yield workflow._workflow


def fingerprints(folder: Path) -> dict[str, str]:
    """From each job, `{rule}/{wildcards}`, to a digest of its params, and of all it is made from.

    The digests of inputs are those of the jobs that make them, or of their content; of those that
    only come first there are none.
    """
    with planned(folder) as workflow:
        jobs = list(workflow.dag.jobs)
        made_by = {str(path): job for job in jobs for path in job.products()}

        @cache
        def digest_of(path: str) -> str:
            job = made_by.get(path)
            if job is None:
                return hashlib.sha256(Path(path).read_bytes()).hexdigest()
            params = sorted(map(repr, job.non_derived_params))
            known = {str(one) for one in job.input if not one.is_ancient}
            inputs = [f"{one} {digest_of(one)}" for one in sorted(known)]
            return hashlib.sha256("\n".join([job.rule.name, *params, *inputs]).encode()).hexdigest()

        return {name_of(job): digest_of(str(job.output[0])) for job in jobs if job.output}


def name_of(job: Any) -> str:
    """The name of a job, which is that of its log."""
    return str(job.log[0]).removeprefix("artifacts/logs/").removesuffix(".log")
