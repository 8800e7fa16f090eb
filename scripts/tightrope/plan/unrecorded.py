"""Files of whose making Snakemake has no record, in `.snakemake/metadata`: they say it themselves.

That folder was deleted, say, or a cache has brought `artifacts/` alone. Snakemake would take such a
file as current unless an input has a later time.
"""

from typing import Any

from tightrope.artifacts.content import IMPORTED, made_with, made_with_of
from tightrope.plan.location import Location


def decide_by_digests(workflow: Any, location: Location) -> None:
    """Have such files made again unless they were made with the settings and inputs of now.

    For those that were, Snakemake gets the record that it has of what it made itself, so that its
    own triggers decide from then on. It is asked when the DAG is built, of the rules of this
    project. With files in storage nothing changes.
    """
    if not workflow.is_main_process or location.stored:
        return
    prepare_dag = workflow._prepare_dag

    def prepare(*words: Any, **settings: Any) -> None:
        prepare_dag(*words, **settings)
        dag = workflow.dag
        update_needrun = dag.update_needrun

        async def decide_and_update(*words: Any, **settings: Any) -> None:
            for job in [one for one in dag.jobs if is_in(location.project, one)]:
                if not workflow.persistence.has_metadata(job):
                    await decide(workflow, job)
            await update_needrun(*words, **settings)

        dag.update_needrun = decide_and_update

    workflow._prepare_dag = prepare


def is_in(project: str, job: Any) -> bool:
    """Return whether a job is of a rule of this project, not of a workflow that imports it."""
    return str(job.rule.snakefile).startswith(project)


async def decide(workflow: Any, job: Any) -> None:
    """Give Snakemake the record of a job's outputs if they are current, else have them made again.

    What a killed job has left is left to Snakemake.
    """
    existing = [path for path in job.output if await path.exists()]
    if not existing or await workflow.persistence.incomplete(job):
        return
    documents = [path for path in existing if path.endswith(".json")]
    if {made_with_of(path) for path in documents or existing[:1]} <= {IMPORTED, made_with(job)}:
        await workflow.persistence.finished(job)
        workflow.persistence.deactivate_cache()  # of records, in which there is none
    else:
        workflow.dag.forcefiles.update(existing)
