"""Terminal output of a run, in place of Snakemake's own log.

Snakemake passes each event to its log handlers as a record with an `event` and its data. A logger
plugin would have to be installed and named on the command line; this handler replaces Snakemake's
own handler while the Snakefile is read. Snakemake's log file still contains everything.
"""

import atexit
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Callable, Container, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tightrope.terminal import lines
from tightrope.terminal.ended import (
    LOGGER,
    Files,
    failure_of,
    files_of,
    name_of,
    reason_of_error,
    refusal_in,
)
from tightrope.terminal.jobs import Job, Run, Seconds, job_of, jobs_to_run
from tightrope.terminal.lines import Line
from tightrope.terminal.screen import LiveScreen, PlainScreen
from tightrope.terminal.stopping import STOPPED, leave_interrupts_to_snakemake

SNAKEMAKES_OWN = "DefaultStreamHandler"
KEPT_SECONDS = Path(".snakemake/job_seconds.json")
# values of --quiet with which Snakemake's own handler stays
QUIET = {"RULES", "PROGRESS", "ALL"}
# Snakemake messages that do not help a user who waits for a report
LEFT_OUT = (
    "Assuming unrestricted",
    "Building DAG of jobs",
    "Using shell:",
    "Provided resources:",
    "Group jobs:",
    "Conda environments:",
    "Singularity containers:",
    "Select jobs to execute",
    "Removing output files of failed job",
    "Trying to restart job",
    "Retrieving from storage:",
    "Finished retrieval",
    "Storing in storage:",
    "Finished upload",
    "Removing local copy of storage file",
    "Uploading source archive",
    "Elapsed time:",
    "Reasons:\n",
    "Exiting because a job execution failed",
    "Complete log(s):",
    "WorkflowError:\nAt least one job did not complete successfully",
)
SILENT = {"workflow_started", "resources_info", "job_started", "shellcmd", "progress", "rulegraph"}


class TerminalHandler(logging.Handler):
    """Snakemake log handler that shows a run as lines and, on a terminal, a progress bar."""

    def __init__(
        self,
        screen: PlainScreen | LiveScreen,
        seconds: Seconds,
        planned: Callable[[], list[Job]],
        files: Files,
        untrained: Container[str] = (),
    ) -> None:
        """Show a run on `screen`, with what is in the files of its jobs.

        `planned` returns its jobs once Snakemake has built the DAG; these models are `untrained`.
        """
        super().__init__()
        self.screen = screen
        self.planned = planned
        self.files = files
        self.untrained = untrained
        self.run = Run(seconds)
        self.exception = ""
        self.crashes: dict[int, Any] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Show a log record; an error here never ends the run."""
        try:
            # what Snakemake reports after a signal is that its jobs have ended
            if STOPPED.is_set():
                return self.finish()
            event = str(getattr(record, "event", None) or "")
            tell = getattr(self, f"tell_{event}", None)
            if tell is not None:
                tell(record.__dict__)
            elif event not in SILENT:
                self.tell(record)
        except Exception:
            self.handleError(record)

    def tell_run_info(self, facts: dict[str, Any]) -> None:
        """Announce the jobs of the run and start the progress bar."""
        self.run.plan(self.planned())
        self.screen.show(lines.planned(self.run))
        self.screen.start(self.run)

    def tell_job_info(self, facts: dict[str, Any]) -> None:
        """Start a job, possibly a retry."""
        number, job = facts["jobid"], job_of(facts, time.monotonic(), self.untrained)
        if number in self.crashes:
            self.run.again(self.crashes.pop(number))
        self.run.start(number, job)
        self.screen.redraw()

    def tell_job_finished(self, facts: dict[str, Any]) -> None:
        """Show a finished job; its outputs may record a failure."""
        ended = self.run.end(facts["job_id"], time.monotonic())
        if ended is None:
            return
        job, seconds = ended
        failure = failure_of(job.outputs, self.files)
        if failure is None:
            self.run.seconds.keep(job, seconds)
        else:
            failure = self.run.fail(failure)
        self.screen.show(lines.ended(self.run, job, seconds, failure))
        if self.run.done >= self.run.total:
            self.finish()

    def tell_job_error(self, facts: dict[str, Any]) -> None:
        """Show a job that ended with an error."""
        exception, self.exception = self.exception, ""
        reason = reason_of_error(facts, exception, self.files)
        self.tell_crash(facts["jobid"], [*map(name_of, facts["log"])], reason)

    def tell_crash(self, number: int, logs: list[str], reason: str) -> None:
        """Show the end of a running job without a result."""
        ended = self.run.end(number, time.monotonic())
        if ended is None:
            return
        job, seconds = ended
        job.logs = logs
        self.run.crashed += 1
        self.crashes[number] = job
        self.screen.show(lines.crashed(self.run, job, seconds, reason))

    def tell_refusal(self, files: list[str], reason: str) -> None:
        """Show a job that ended well, and whose files Snakemake does not accept."""
        running = self.run.running.items()
        number = next((n for n, job in running if not {*files}.isdisjoint(job.outputs)), None)
        if number is None:
            self.screen.show([Line(reason, lines.FAILED)])
        else:
            job = self.run.running[number]
            self.tell_crash(number, job.logs, reason)

    def tell_error(self, facts: dict[str, Any]) -> None:
        """Keep an exception for the job error event that follows, or show Snakemake's error."""
        text = str(facts["msg"])
        if refusal := refusal_in(text):
            return self.tell_refusal(refusal.files, refusal.reason)
        if self.run.running and facts.get("exception") != "WorkflowError":
            self.exception = text
        elif not text.startswith(LEFT_OUT):
            self.screen.show([Line(text, lines.FAILED)])

    def tell(self, record: logging.LogRecord) -> None:
        """Show a message that belongs to no job."""
        text = record.getMessage().rstrip() if record.msg else ""
        if text.startswith("Complete log(s): ") and self.run.crashed:
            self.finish()
            self.screen.show([Line(f"Snakemake's log: {os.path.relpath(text[17:])}")])
        elif text and not text.startswith(LEFT_OUT):
            style = lines.FAILED if record.levelno >= logging.ERROR else ""
            self.screen.show([Line(text, style)])

    def finish(self) -> None:
        """Remove the progress bar and report the outcome of the jobs, once."""
        self.screen.stop()
        if STOPPED.is_set():
            said, self.run.stopped = self.run.stopped, True
            return None if said else self.screen.show(lines.stopped(self.run))
        if self.exception:
            self.screen.show([Line(self.exception, lines.FAILED)])
            self.exception = ""
        if self.run.began is None:
            return
        self.screen.show(lines.closing(self.run, time.monotonic()))
        self.run.began = None

    def close(self) -> None:
        """Restore the terminal."""
        self.finish()
        super().close()


class DryRunHandler(TerminalHandler):
    """Snakemake log handler that shows what a dry run plans as a table with a row per rule."""

    def __init__(self, *words: Any) -> None:
        """Show a plan as `TerminalHandler` shows a run."""
        super().__init__(*words)
        self.jobs: list[tuple[Job, str]] = []

    def tell_run_info(self, facts: dict[str, Any]) -> None:
        """Show nothing: the table has the numbers."""

    def tell_job_info(self, facts: dict[str, Any]) -> None:
        """Keep a planned job with Snakemake's reason."""
        self.jobs.append((job_of(facts, 0.0, self.untrained), facts["reason"] or ""))

    def tell(self, record: logging.LogRecord) -> None:
        """Show the table at the end, and other messages as in a run."""
        if record.getMessage().startswith("This was a dry-run"):
            return self.screen.show(lines.would_run(self.jobs))
        return super().tell(record)


def start_terminal(workflow: Any, models: Mapping[str, Any], *, module: bool) -> None:
    """Show the run of `workflow` in place of Snakemake's own handler; before the DAG is built.

    Snakemake's stays with --verbose, --debug-dag, --quiet, and with a logger plugin, and in the
    process of a job. A module of another workflow has the terminal of that.
    """
    if module or not workflow.is_main_process:
        return
    leave_interrupts_to_snakemake()
    logger = logging.getLogger(LOGGER)
    own: Any = next((one for one in logger.handlers if one.name == SNAKEMAKES_OWN), None)
    if own is None or wants_snakemakes(own.filters[0]):
        return
    screen = LiveScreen(color=not own.nocolor) if draws(own) else PlainScreen(own.stream)
    planned, files = partial(jobs_to_run, workflow), files_of(workflow)
    shows = DryRunHandler if own.filters[0].dryrun else TerminalHandler
    untrained = {name for name, one in models.items() if not (one["train"] or one["qat"])}
    handler = shows(screen, Seconds(KEPT_SECONDS), planned, files, untrained)
    handler.addFilter(own.filters[0])
    logger.removeHandler(own)
    logger.addHandler(handler)
    # restore the hidden cursor even if a run ends without closing its handlers
    atexit.register(handler.close)


def draws(own: Any) -> bool:
    """Return whether Snakemake's own handler writes to a terminal that can show a progress bar."""
    terminal = own.stream is sys.stderr and own.is_tty and os.environ.get("TERM") != "dumb"
    return terminal and importlib.util.find_spec("rich") is not None


def wants_snakemakes(settings: Any) -> bool:
    """Return whether the command-line options ask for Snakemake's own log."""
    quiet = {one.name for one in settings.quiet}
    return settings.verbose or settings.debug_dag or bool(QUIET & quiet)
