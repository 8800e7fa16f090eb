"""The begin of a run: it takes the folder, and makes again what is asked for or missing."""

import atexit
import sys
from pathlib import Path
from typing import Any

from tightrope.artifacts.failures import failure_in
from tightrope.artifacts.files import cannot_be_written, refusal_to_write
from tightrope.errors import ArtifactError, TightropeError
from tightrope.jobs.ended import known
from tightrope.plan.announce import announce
from tightrope.plan.config import Document
from tightrope.plan.hosts import require_nodes
from tightrope.plan.location import Location
from tightrope.plan.lock import LOCK, name_holder, take_folder
from tightrope.plan.plan import Plan
from tightrope.plan.records import failing_files, records
from tightrope.plan.reports import REPORTS
from tightrope.plan.stored import files_here, missing_of, require_storable
from tightrope.summary.failures import exit_with_failures


def begin_with_dag(workflow: Any, config: Document, plan: Plan, location: Location) -> None:
    """Have the main process begin the run just before Snakemake builds the DAG.

    Only then it is known whether jobs are to be executed, and no file has been looked at.
    """
    prepare_dag = workflow._prepare_dag

    def prepare(*words: Any, **settings: Any) -> None:
        if workflow.executor_plugin and not workflow.dryrun:
            begin_or_exit(workflow, config, location)
        if workflow.dryrun or location.module:  # Snakemake calls no hook of these
            announce(workflow, config, plan)
        prepare_dag(*words, **settings)
        workflow.dag.forcefiles |= to_make_again(workflow, config, plan, location)

    if workflow.is_main_process:
        workflow._prepare_dag = prepare


def begin_or_exit(workflow: Any, config: Document, location: Location) -> None:
    """Take the folder for a run; end the process with one line where it cannot begin."""
    if known():  # it has inherited the folder
        return name_holder()
    try:
        # of a full disk Snakemake says only that, with its traceback
        if (refusal := refusal_to_write(LOCK.parent)) is not None:
            raise cannot_be_written(LOCK.parent.absolute(), refusal)
        require_nodes(config, local=workflow.local_exec)
        if location.stored:
            require_storable(config, sys.argv)
        if not location.module:  # whose importer has a lock
            take_folder(slurm=workflow.executor_plugin.name == "slurm")
    except TightropeError as error:
        sys.exit(str(error))
    if config["strict"]:
        # Snakemake calls no hook when there is nothing to do
        atexit.register(exit_with_failures, Path(location.made(REPORTS[0])))


def to_make_again(workflow: Any, config: Document, plan: Plan, location: Location) -> set[str]:
    """Return failed and disturbed records, as the configuration asks, and missing files.

    Snakemake itself makes no missing file that only current ones need.
    """
    own = [path for paths in records(plan).values() for path in paths]
    retry, again = (not known() and config[key] for key in ("retry_failed", "remeasure"))
    failing = map(location.made, failing_files(config, plan) if retry else [])
    with files_here(workflow, failing, 2**20) as files:
        found = {str(path) for path in files if path.is_file() and has_failed(path, retry)}
    if again:
        from tightrope.plan.disturbed_records import is_disturbed  # slow import, seldom needed

        with files_here(workflow, map(location.made, own)) as files:
            found |= {str(path) for path in files if is_disturbed(path)}
    for model in plan.models:  # what its splits and its checkpoint are made from
        own += [f"artifacts/{model}/data/data.json", f"artifacts/{model}/source/checkpoint.json"]
    return found | missing_of(workflow, map(location.made, own))


def has_failed(path: Path, which: Any) -> bool:
    """Return whether the file is damaged or holds a failure, with `transient` one that is so."""
    try:
        failure = failure_in(path)
    except ArtifactError:
        return True
    return failure is not None and (failure["transient"] or which != "transient")
