"""Files of whose making Snakemake has no record, in `.snakemake/metadata`: they say it themselves.

That folder was deleted, say, or a cache has brought `artifacts/` alone. Snakemake would take such a
file as current unless an input has a later time.
"""

import sys
from typing import Any

from tightrope.artifacts.content import IMPORTED, made_with, made_with_of
from tightrope.plan.location import Location


def decide_by_digests(workflow: Any, location: Location) -> None:
    """Have such files made again unless they were made with the settings and inputs of now.

    For those that were, Snakemake gets the record that it has of what it made itself, so that its
    own triggers decide from then on. To be called with the DAG that Snakemake is about to build.
    What plans no run, such as --summary, and files in storage are left to Snakemake.
    """
    if location.stored or workflow.execution_settings is None:
        return
    update_needrun = workflow.dag.update_needrun

    async def decide_and_update(*words: Any, **settings: Any) -> None:
        await decide(workflow, location)
        await update_needrun(*words, **settings)

    workflow.dag.update_needrun = decide_and_update


async def decide(workflow: Any, location: Location) -> None:
    """Decide about the outputs of all jobs that Snakemake has no record of; say so in one line.

    What a killed job has left is left to Snakemake.
    """
    again: list[str] = []
    for job in workflow.dag.jobs:
        # not of a workflow that imports this one
        own = str(job.rule.snakefile).startswith(location.project)
        if not own or workflow.persistence.has_metadata(job):
            continue
        existing = [path for path in job.output if await path.exists()]
        if not existing or await workflow.persistence.incomplete(job):
            continue
        documents = [path for path in existing if path.endswith(".json")] or existing[:1]
        if {made_with_of(path) for path in documents} <= {IMPORTED, made_with(job)}:
            await workflow.persistence.finished(job)
            workflow.persistence.deactivate_cache()  # of records, in which there is none
        else:
            again += existing
    workflow.dag.forcefiles.update(again)
    if again:
        print(
            f"{again[0]}{f' and {len(again) - 1} more' if again[1:] else ''}: made with other "
            "settings or inputs, or by an earlier version (Snakemake has no record); made again",
            file=sys.stderr,
        )
