"""Terminal output of a run, in place of Snakemake's own log, and its stop by Ctrl-C and SIGTERM.

Snakemake passes each event to its log handlers as a record with an `event` and its data. A logger
plugin would have to be installed and named on the command line; this handler replaces Snakemake's
own handler while the Snakefile is read. Snakemake's log file still contains everything.

Snakemake waits for running jobs after SIGTERM, however long they take, and a Ctrl-C reaches jobs
directly: each would end with a traceback of its own. Here they end at once, and two lines say how
to go on.
"""

import atexit
import logging
import os
import re
import select
import signal
import sys
import threading
import time
import warnings
from collections.abc import Container, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from tightrope.machine.processes import adopt_orphans, end_children
from tightrope.terminal import jobs
from tightrope.terminal.ended import LOGGER, EndedJobs, failure_of, name_of, refusal_in
from tightrope.terminal.jobs import FAILED, Job, Line, Run, Seconds, job_of, subject_of

SNAKEMAKES_OWN = "DefaultStreamHandler"
KEPT_SECONDS = Path(".snakemake/job_seconds.json")
# redraw rarely: drawing takes CPU time from a concurrent measurement
REDRAW_SECONDS = 1.0
REDRAW_SECONDS_MEASURING = 5.0
SILENCE_SECONDS = 20.0
MEASURING = ("measure_", "compare_", "race_", "search_")
BAR_WIDTH = 30
STDERR = 2
ENDING_SECONDS = 2.0
# values of --quiet with which Snakemake's own handler stays
QUIET = {"RULES", "PROGRESS", "ALL"}
# Snakemake messages that do not help a user who waits for a report
LEFT_OUT = re.compile(
    r"Assuming unrestricted|Building DAG of jobs|Using shell:|Provided resources:|Group jobs:|"
    r"Conda environments:|Singularity containers:|Select jobs to execute|Removing output files of "
    r"failed job|Trying to restart job|Retrieving from storage:|Finished retrieval|Storing in "
    r"storage:|Finished upload|Removing local copy of storage file|Uploading source archive|"
    r"Some jobs were triggered by provenance|Rules with provenance triggered jobs:|"
    r"Elapsed time:|Reasons:\n|Exiting because a job execution failed|Complete log\(s\):|"
    r"WorkflowError:\nAt least one job did not complete successfully"
)
SILENT = {"workflow_started", "resources_info", "job_started", "shellcmd", "progress", "rulegraph"}
SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE_SECONDS = 2.0  # that jobs have to delete their temporary files
STOPPED = threading.Event()  # by a signal


class PlainScreen:
    """Lines on a stream that is not a terminal: no bar, no escape sequences.

    Where no line was printed for `silence` seconds, a line on the running job follows.
    """

    def __init__(self, stream: TextIO, silence: float = SILENCE_SECONDS) -> None:
        self.stream = stream
        self.silence = silence
        self.lock = threading.RLock()
        self.said = time.monotonic()
        self.stopping = threading.Event()

    def start(self, run: Run) -> None:
        """Report on the run in the silence between its jobs' lines."""
        threading.Thread(target=self.report, args=(run,), daemon=True).start()

    def report(self, run: Run) -> None:
        """Print a line after each silence until the screen stops."""
        while not self.stopping.wait(self.said + self.silence - time.monotonic()):
            # the run continues after its output is closed
            with self.lock, suppress(OSError):
                if not self.stopping.is_set() and time.monotonic() >= self.said + self.silence:
                    self.said = time.monotonic()
                    self.show(jobs.progress_line(run, self.said))

    def show(self, lines: list[Line]) -> None:
        """Print the lines."""
        with self.lock:
            self.said = time.monotonic() if lines else self.said
            for line in lines:
                print(line.text, file=self.stream, flush=True)

    def stop(self) -> None:
        """Report no more."""
        with self.lock:
            self.stopping.set()


class LiveScreen:
    """Lines on the terminal (file descriptor 2), with running jobs and a bar below.

    While the bar is shown, descriptor 2 is a pipe, and output of jobs is printed above the bar.
    Lines on the remaining time are dropped, since the bar shows it.
    """

    def __init__(self, *, color: bool) -> None:
        self.color = color
        self.live: Any = None
        self.lock = threading.RLock()

    def start(self, run: Run) -> None:
        """Draw the bar and redirect descriptor 2 into the pipe."""
        from rich.live import Live

        self.run = run
        self.terminal = os.fdopen(os.dup(STDERR), "w", buffering=1)
        self.console = self.console_on(self.terminal)
        options: dict[str, Any] = {"console": self.console, "transient": True}
        options |= dict.fromkeys(("auto_refresh", "redirect_stdout", "redirect_stderr"), False)
        self.live = Live(get_renderable=self.picture, **options)
        self.live.start()
        self.pipe, writing = os.pipe()
        os.dup2(writing, STDERR)
        os.close(writing)
        self.stopping = threading.Event()
        self.reader = threading.Thread(target=self.follow, daemon=True)
        self.reader.start()

    def console_on(self, stream: TextIO) -> Any:
        """Return a rich console on the terminal `stream`, without automatic highlighting."""
        from rich.console import Console

        return Console(file=stream, highlight=False, no_color=None if self.color else True)

    def show(self, lines: list[Line]) -> None:
        """Print the lines, above the bar if it is shown, which is redrawn."""
        with self.lock:
            for line in lines:
                if self.live is None and not line.style:
                    print(line.text, file=sys.stderr, flush=True)
                    continue
                from rich.text import Text  # slow, so only for the bar and for colors

                console = self.console_on(sys.stderr) if self.live is None else self.console
                console.print(Text(*line), soft_wrap=True)
            if self.live is not None:
                self.live.refresh()

    def stop(self) -> None:
        """Remove the bar and restore descriptor 2."""
        if self.live is None:
            return
        sys.stderr.flush()
        os.dup2(self.terminal.fileno(), STDERR)
        self.stopping.set()
        self.reader.join(ENDING_SECONDS)
        with self.lock:
            self.live.stop()
            self.live = None

    def follow(self) -> None:
        """Print what jobs write into the pipe and redraw periodically until the screen stops."""
        rest, ended = b"", False
        while not ended:
            measuring = any(job.rule.startswith(MEASURING) for job in [*self.run.running.values()])
            pause = REDRAW_SECONDS_MEASURING if measuring else REDRAW_SECONDS
            wait = 0.0 if self.stopping.is_set() else pause
            ready, _, _ = select.select([self.pipe], [], [], wait)
            chunk = os.read(self.pipe, 65536) if ready else b""
            ended = not chunk and (bool(ready) or self.stopping.is_set())
            *lines, rest = (rest + chunk).split(b"\n")
            lines += [rest] if ended and rest else []
            texts = [line.decode(errors="replace").rstrip() for line in lines]
            # the run continues after its terminal is closed
            with suppress(OSError):
                self.show([Line(text) for text in texts if not text.endswith(" left")])
        os.close(self.pipe)

    def picture(self) -> Any:
        """Render the running jobs, one line each, and the bar."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        now, run = time.monotonic(), self.run
        uncut: dict[str, Any] = {"no_wrap": True, "overflow": "ellipsis"}
        lines = jobs.running_lines(run, now, self.console.width)
        share = run.share_done(now)
        done = run.done / max(1, run.total) if share is None else share
        styles: dict[str, Any] = {"complete_style": "green", "finished_style": "green"}
        bar = ProgressBar(total=1.0, completed=done, width=BAR_WIDTH, **styles)
        row = Table.grid(padding=(0, 2))
        row.add_row(bar, Text(jobs.count_and_left(run, now), **uncut))
        return Group(*(Text(line, style="cyan", **uncut) for line in lines), row)


class TerminalHandler(logging.Handler):
    """Snakemake log handler that shows a run as lines and, on a terminal, a progress bar.

    What a dry run plans is a table with a row per rule.
    """

    def __init__(
        self, own: Any, workflow: Any, ended: EndedJobs, untrained: Container[str]
    ) -> None:
        """Take the place of Snakemake's `own` handler; `ended` gets events before this one."""
        super().__init__()
        self.addFilter(own.filters[0])
        self.would_run: list[tuple[Job, str]] | None = [] if own.filters[0].dryrun else None
        # whether it writes to a terminal that can show a progress bar
        terminal = own.stream is sys.stderr and own.is_tty and os.environ.get("TERM") != "dumb"
        self.screen = LiveScreen(color=not own.nocolor) if terminal else PlainScreen(own.stream)
        self.workflow, self.ended, self.untrained = workflow, ended, untrained
        self.run = Run(Seconds(KEPT_SECONDS))
        self.exception = ""
        self.crashes: dict[int, Job] = {}

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
        if self.would_run is not None:
            return  # the table has the numbers
        planned = ((one.rule.name, one.wildcards_dict) for one in self.workflow.dag.needrun_jobs())
        self.run.plan(Job(rule, subject_of(rule, wildcards)) for rule, wildcards in planned)
        self.screen.show(jobs.planned(self.run))
        self.screen.start(self.run)

    def tell_job_info(self, facts: dict[str, Any]) -> None:
        """Start a job, possibly a retry."""
        number, job = facts["jobid"], job_of(facts, time.monotonic(), self.untrained)
        if self.would_run is not None:
            return self.would_run.append((job, facts["reason"] or ""))
        if number in self.crashes:
            self.run.again(self.crashes.pop(number))
        self.run.start(number, job)
        self.screen.show([])

    def tell_job_finished(self, facts: dict[str, Any]) -> None:
        """Show a finished job; its outputs may record a failure."""
        if (ended := self.run.end(facts["job_id"], time.monotonic())) is None:
            return
        failure = failure_of(ended[0].outputs, self.ended.files)
        if failure is None:
            self.run.seconds.keep(*ended)
        else:
            failure = self.run.fail(failure)
        self.screen.show(jobs.ended(self.run, *ended, failure))
        if self.run.done >= self.run.total:
            self.finish()

    def tell_job_error(self, facts: dict[str, Any]) -> None:
        """Show a job that ended with an error."""
        self.exception = ""
        reason = self.ended.reason_of(facts["jobid"], [])
        self.tell_crash(facts["jobid"], [*map(name_of, facts["log"])], reason)

    def tell_crash(self, number: int, logs: list[str], reason: str) -> None:
        """Show the end of a running job without a result."""
        if (ended := self.run.end(number, time.monotonic())) is None:
            return
        ended[0].logs = logs
        self.run.crashed += 1
        self.crashes[number] = ended[0]
        self.screen.show(jobs.ended(self.run, *ended, reason, crashed=True))

    def tell_error(self, facts: dict[str, Any]) -> None:
        """Show Snakemake's error, but what a job error event will follow.

        Where it does not accept the files of a job that ended well, that job has crashed.
        """
        text = str(facts["msg"])
        if refusal := refusal_in(text):
            for number, job in list(self.run.running.items()):
                if {*refusal.files} & {*job.outputs}:
                    return self.tell_crash(number, job.logs, refusal.reason)
            self.screen.show([Line(refusal.reason, FAILED)])
        elif self.run.running and facts.get("exception") != "WorkflowError":
            self.exception = text
        elif not LEFT_OUT.match(text):
            self.screen.show([Line(text, FAILED)])

    def tell(self, record: logging.LogRecord) -> None:
        """Show a message that belongs to no job, or at its end what a dry run plans."""
        text = record.getMessage().rstrip() if record.msg else ""
        if self.would_run is not None and text.startswith("This was a dry-run"):
            self.screen.show(jobs.would_run(self.would_run))
        elif text.startswith("Complete log(s): ") and self.run.crashed:
            self.finish()
            self.screen.show([Line(f"Snakemake's log: {os.path.relpath(text[17:])}")])
        elif text and not LEFT_OUT.match(text):
            self.screen.show([Line(text, FAILED if record.levelno >= logging.ERROR else "")])

    def finish(self) -> None:
        """Remove the progress bar and report the outcome of the jobs, once."""
        self.screen.stop()
        if self.run.stopped:
            return
        self.run.stopped = STOPPED.is_set()
        if self.exception and not self.run.stopped:
            self.screen.show([Line(self.exception, FAILED)])
            self.exception = ""
        self.screen.show(jobs.closing(self.run, time.monotonic()))
        self.run.began = None

    def close(self) -> None:
        """Restore the terminal."""
        self.finish()
        super().close()


def start_terminal(
    workflow: Any, models: Mapping[str, Any], ended: EndedJobs, *, module: bool
) -> None:
    """Show the run of `workflow` in place of Snakemake's own handler; before the DAG is built.

    Snakemake's stays with --verbose, --debug-dag, --quiet, and with a logger plugin, and in the
    process of a job. A module of another workflow has the terminal of that.
    """
    if module or not workflow.is_main_process:
        return
    from snakemake.shell import shell

    if str(shell.get_executable()).endswith("bash"):
        # jobs ignore Ctrl-C; the first half is Snakemake's own
        shell.prefix("set -euo pipefail; trap '' INT; ")
    watch_signals(local=False)
    logger = logging.getLogger(LOGGER)
    own: Any = next((one for one in logger.handlers if one.name == SNAKEMAKES_OWN), None)
    settings: Any = own and own.filters[0]
    quiet = {one.name for one in settings.quiet} if own else set()
    if own is None or settings.verbose or settings.debug_dag or QUIET & quiet:
        return
    untrained = {name for name, one in models.items() if not (one["train"] or one["qat"])}
    handler = TerminalHandler(own, workflow, ended, untrained)
    logger.removeHandler(own)
    logger.addHandler(handler)
    # restore the hidden cursor even if a run ends without closing its handlers
    atexit.register(handler.close)


def watch_signals(*, local: bool) -> None:
    """Handle SIGNALS by `stop`, where this is the main thread: others cannot.

    To be called again when the first job starts: Snakemake's scheduler sets its handler of SIGTERM.
    """
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            signal.signal(number, partial(stop, local=local))


def stop(number: int, frame: FrameType | None, *, local: bool) -> None:
    """Raise KeyboardInterrupt, on which Snakemake ends a run; end the jobs if they are `local`."""
    for one in SIGNALS:
        # not SIG_IGN, which a job that starts now would inherit
        signal.signal(one, lambda *_: None)
    # the interrupt may hit Snakemake's event loop anywhere, also when its handlers are removed
    sys.excepthook = lambda *_: None
    sys.unraisablehook = lambda *_: None
    logging.lastResort = logging.NullHandler()
    warnings.simplefilter("ignore")
    STOPPED.set()
    if local:
        threading.Thread(target=end_jobs, daemon=True).start()
    raise KeyboardInterrupt


def end_jobs() -> None:
    """End the children of this process, also those that start now, for as long as it lives."""
    adopt_orphans()
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        end_children(kill=time.monotonic() > deadline)
        time.sleep(0.1)
