"""The begin of a run: its lock, what is deleted to be made again, and the attempts of its jobs."""

import os
from pathlib import Path
from typing import IO, Any

from tightrope.jobs.ended import continues
from tightrope.plan import reports
from tightrope.plan.config import Document
from tightrope.plan.graphs import graph_columns, graph_records
from tightrope.plan.plan import Plan
from tightrope.plan.records import failing_files, records
from tightrope.plan.run import (
    DISTURBED,
    TRANSIENT,
    delete_disturbed,
    delete_ended,
    delete_failed,
    end_strictly,
    take_run_lock,
    this_run_executes_jobs,
)
from tightrope.terminal.start import start_terminal

ATTEMPTS = "TIGHTROPE_ATTEMPTS"


def begin_run(workflow: Any, config: Document, plan: Plan) -> IO[str] | None:
    """Prepare a run in the main process before the DAG is built; return the run lock to keep."""
    if not workflow.is_main_process or not this_run_executes_jobs():
        return None
    lock = take_run_lock()
    if continues():
        start_terminal(workflow)
        return None
    if lock is not None:
        delete_ended(failing_files(config, plan))
    if lock is not None and config["retry_failed"]:
        transient = config["retry_failed"] == TRANSIENT
        delete_failed(failing_files(config, plan), transient=transient)
    if lock is not None and config["remeasure"] == DISTURBED:
        delete_disturbed([path for paths in records(plan).values() for path in paths])
    if config["strict"]:
        end_strictly("reports/summary.json")
    start_terminal(workflow)
    return lock


def generations(
    workflow: Any, config: Document, plan: Plan, lock: IO[str] | None
) -> dict[str, int]:
    """Return `reports.generation` of each rule that reports; who holds `lock` persists it,
    and so does a run that goes on after that one.

    In the process of a job, files are missing that the run is about to make: they do not count.
    """
    files: dict[str, list[Path | str]] = {
        "summarize": reports.summarized_files(records(plan)),
        "render_report": [*graph_records(graph_columns(config, plan.jobs))],
    }
    main, keep = workflow.is_main_process, lock is not None or continues()
    return {
        rule: reports.generation(rule, paths if main else [], persist=keep)
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
