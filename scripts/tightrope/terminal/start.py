"""Put the terminal output of a run, and its stop by Ctrl-C, in place of Snakemake's own."""

from functools import partial
from typing import Any

from tightrope.terminal.job_files import files_of
from tightrope.terminal.jobs import jobs_to_run
from tightrope.terminal.plugin import show_run
from tightrope.terminal.stopping import leave_interrupts_to_snakemake


def start_terminal(workflow: Any, *, module: bool) -> None:
    """Show the run of `workflow` on the terminal, in its main process; before the DAG is built.

    A module of another workflow has the terminal of that.
    """
    if workflow.is_main_process and not module:
        leave_interrupts_to_snakemake()
        show_run(partial(jobs_to_run, workflow), files_of(workflow))
