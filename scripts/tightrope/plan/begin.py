"""The begin of a run: its lease, what is deleted to be made again, and the attempts of its jobs."""

import atexit
import math
import os
import sys
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import cannot_be_written, refusal_to_write
from tightrope.errors import TightropeError
from tightrope.jobs.ended import continues, kept
from tightrope.plan import reports
from tightrope.plan.config import Document
from tightrope.plan.graphs import graph_columns, graph_records
from tightrope.plan.hosts import require_nodes
from tightrope.plan.lease import SNAKEMAKE, Lease
from tightrope.plan.location import Location
from tightrope.plan.orphans import require_no_jobs, take_folder
from tightrope.plan.plan import Plan
from tightrope.plan.records import failing_files, records
from tightrope.plan.run import (
    DISTURBED,
    LOCAL,
    SLURM,
    TRANSIENT,
    delete_disturbed,
    delete_ended,
    delete_failed,
    end_strictly,
    executor_of_this_run,
    this_run_executes_jobs,
)
from tightrope.plan.slurm_queue import require_slurm
from tightrope.plan.stored import files_here, require_storable
from tightrope.terminal.start import start_terminal

ATTEMPTS = "TIGHTROPE_ATTEMPTS"
# a file that holds a failure is smaller
FAILURE_BYTES = 2**20
# folders of what each model has, and whose jobs write no failure
NEEDED = ("data", "source", "splits", "checkpoint")
# of them, what the summary does not read
FIRST = ("data/data.json", "source/checkpoint.json")


def begin_run(workflow: Any, config: Document, plan: Plan, location: Location) -> bool:
    """Prepare a run in the main process before the DAG is built; return whether it deleted files.

    The process ends with one line where another run works there; else it has the lease of the
    folder until its end. What continues a run deletes nothing to be made again. Without jobs there
    is no lease, nor in a module.
    """
    if not workflow.is_main_process or not this_run_executes_jobs():
        return False
    require_nodes_or_exit(config, stored=location.stored)
    if location.module:
        return begin_module(workflow, config, plan, location)
    lease = folder_or_exit()
    require_room_or_exit()
    deleted = False
    if lease.owned:
        deleted = delete_to_try_again(workflow, config, plan)
        deleted |= delete_to_make_again(workflow, config, plan, location)
    if config["strict"] and lease.owned:
        end_strictly("reports/summary.json")
    # after `end_strictly`, and so before it at the end, which may end the process
    atexit.register(lease.release)
    start_terminal(workflow)
    return deleted


def files_made_first(plan: Plan, location: Location) -> list[str]:
    """Return the data and the source of each model, which the summary does not read.

    As inputs of it they are made where they are missing: Snakemake makes no missing file that no
    job to be run reads. Files in storage are left out.
    """
    if location.stored:
        return []
    return [f"artifacts/{model}/{file}" for model in plan.models for file in FIRST]


def unmade_files(workflow: Any, plan: Plan, location: Location) -> list[str]:
    """Return the data and checkpoints that jobs of the last run here ended without."""
    if not workflow.is_main_process or location.module or location.stored:
        return []
    unmade = [path for path in kept().outputs if not Path(path).exists()]
    return [path for path in unmade if model_needing(path) in plan.models]


def model_needing(path: str) -> str | None:
    """Return the model whose data, source or checkpoint the file is, None for other files."""
    parts = Path(path).parts
    needed = len(parts) == 4 and parts[0] == "artifacts" and parts[2] in NEEDED
    return parts[1] if needed else None


def require_nodes_or_exit(config: Document, *, stored: bool) -> None:
    """End the process with one line where jobs cannot be sent to the nodes that they are for.

    With `stored`, where files are in storage, also for what does not work there yet. What continues
    a run for its report runs here, whatever is missing.
    """
    executor = executor_of_this_run()
    try:
        require_nodes(config, local=executor == LOCAL and not continues())
        if executor == SLURM:
            require_slurm()
        if stored:
            require_storable(config, sys.argv)
    except TightropeError as error:
        sys.exit(str(error))


def begin_module(workflow: Any, config: Document, plan: Plan, location: Location) -> bool:
    """Prepare a run in which another workflow has imported this one; see `begin_run`.

    Snakemake's own lock keeps other runs away. Jobs of a killed run may still measure.
    """
    try:
        require_no_jobs()
    except TightropeError as error:
        sys.exit(str(error))
    require_room_or_exit()
    deleted = delete_to_make_again(workflow, config, plan, location)
    if config["strict"]:
        end_strictly(location.made("reports/summary.json"))
    return deleted


def delete_to_try_again(workflow: Any, config: Document, plan: Plan) -> bool:
    """Delete the failures of jobs that the last run here went on without; return if there were."""
    paths = failing_files(config, plan) if kept().outputs else []
    with files_here(workflow, paths, FAILURE_BYTES) as files:
        return bool(delete_ended(files))


def delete_to_make_again(workflow: Any, config: Document, plan: Plan, location: Location) -> bool:
    """Delete what of this configuration is to be made again; return whether there was anything.

    These are failures and disturbed records, as the configuration asks.
    """
    deleted: list[Path] = []
    if config["retry_failed"]:
        transient = config["retry_failed"] == TRANSIENT
        paths = map(location.made, failing_files(config, plan))
        with files_here(workflow, paths, FAILURE_BYTES) as files:
            deleted += delete_failed(files, transient=transient)
    if config["remeasure"] == DISTURBED:
        measured = (path for paths in records(plan).values() for path in paths)
        with files_here(workflow, map(location.made, measured), math.inf) as files:
            deleted += delete_disturbed(files)
    return bool(deleted)


def folder_or_exit() -> Lease:
    """Return `take_folder` of this run; end the process with one line on an error."""
    try:
        return take_folder(slurm=executor_of_this_run() == SLURM)
    except TightropeError as error:
        sys.exit(str(error))


def require_room_or_exit() -> None:
    """End the process with one line on a full disk, of which Snakemake says only that."""
    try:
        if (refusal := refusal_to_write(SNAKEMAKE)) is not None:
            raise cannot_be_written(SNAKEMAKE.absolute(), refusal)
    except TightropeError as error:
        sys.exit(str(error))


def generations(
    workflow: Any,
    config: Document,
    plan: Plan,
    location: Location,
    *,
    deleted: bool,
    unmade: list[str],
) -> dict[str, int]:
    """Return `reports.generation` of each rule that reports; a run that executes jobs persists it.

    The summary is of the `unmade` files too. In the process of a job, files are missing that the
    run is about to make: they do not count. Of files in storage it is known only whether the begin
    of the run has `deleted` some.
    """
    graphs = graph_records(graph_columns(config, plan.jobs))
    files: dict[str, list[Path | str]] = {
        "summarize": [*reports.summarized_files(records(plan), location.prefix), *unmade],
        "render_report": [location.made(path) for path in graphs],
    }
    main = workflow.is_main_process
    looked_at = main and not location.stored
    persist = main and this_run_executes_jobs()
    return {
        rule: reports.generation(
            rule,
            paths if looked_at else [],
            missing=location.stored and deleted,
            persist=persist,
            prefix=location.prefix,
        )
        for rule, paths in files.items()
    }


def last_attempt(workflow: Any, wildcards: Any, attempt: int) -> int:
    """Return 1 when no attempt of the job follows this one, else 0.

    The main process knows Snakemake's --retries. On a cluster's nodes --retries is 0; they read the
    number of attempts from the environment that the main process passes on.
    """
    if workflow.is_main_process and workflow.execution_settings is not None:
        os.environ[ATTEMPTS] = str(workflow.execution_settings.retries + 1)
    return int(attempt >= int(os.environ.setdefault(ATTEMPTS, "1")))
