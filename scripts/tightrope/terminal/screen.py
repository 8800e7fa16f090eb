"""Screens for the lines of a run: a plain stream, or a terminal with a progress bar below."""

import os
import select
import sys
import threading
import time
from contextlib import suppress
from typing import Any, TextIO

from tightrope.terminal.jobs import Run
from tightrope.terminal.lines import Line, count_and_left, progress_line, running_lines

# redraw rarely: drawing takes CPU time from a concurrent measurement
REDRAW_SECONDS = 1.0
REDRAW_SECONDS_MEASURING = 5.0
SILENCE_SECONDS = 20.0
MEASURING = ("measure_", "compare_", "race_", "search_")
BAR_WIDTH = 30
STDERR = 2
ENDING_SECONDS = 2.0


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
                    self.show(progress_line(run, time.monotonic()))

    def show(self, lines: list[Line]) -> None:
        """Print the lines."""
        with self.lock:
            self.said = time.monotonic()
            for line in lines:
                print(line.text, file=self.stream, flush=True)

    def redraw(self) -> None:
        """Do nothing: there is no bar."""

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
        self.console = console_on(self.terminal, color=self.color)
        self.live = Live(
            get_renderable=self.picture,
            console=self.console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self.live.start()
        self.pipe, writing = os.pipe()
        os.dup2(writing, STDERR)
        os.close(writing)
        self.stopping = threading.Event()
        self.reader = threading.Thread(target=self.follow, daemon=True)
        self.reader.start()

    def show(self, lines: list[Line]) -> None:
        """Print the lines, above the bar if it is shown."""
        with self.lock:
            for line in lines:
                self.print(line)
            self.redraw()

    def print(self, line: Line) -> None:
        """Print one line; import rich, which is slow, only for the bar and for colors."""
        if self.live is None and not line.style:
            return print(line.text, file=sys.stderr, flush=True)
        from rich.text import Text

        console = console_on(sys.stderr, color=self.color) if self.live is None else self.console
        console.print(Text(*line), soft_wrap=True)

    def redraw(self) -> None:
        """Redraw the bar with the current state of the run."""
        with self.lock:
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
        """Print the pipe's content and redraw periodically until the screen stops."""
        rest = b""
        while True:
            ready, _, _ = select.select([self.pipe], [], [], self.pause())
            chunk = os.read(self.pipe, 65536) if ready else b""
            if chunk:
                *lines, rest = (rest + chunk).split(b"\n")
                self.forward(lines)
            elif ready or self.stopping.is_set():
                self.forward([rest] * bool(rest))
                return os.close(self.pipe)
            else:
                # the run continues after its terminal is closed
                with suppress(OSError):
                    self.redraw()

    def forward(self, lines: list[bytes]) -> None:
        """Print lines written by jobs, except those on the remaining time."""
        texts = [line.decode(errors="replace").rstrip() for line in lines]
        told = [Line(text) for text in texts if not text.endswith(" left")]
        with suppress(OSError):
            self.show(told)

    def pause(self) -> float:
        """Return the seconds until the next redraw."""
        if self.stopping.is_set():
            return 0.0
        rules = [job.rule for job in list(self.run.running.values())]
        measuring = any(rule.startswith(MEASURING) for rule in rules)
        return REDRAW_SECONDS_MEASURING if measuring else REDRAW_SECONDS

    def picture(self) -> Any:
        """Render the running jobs, one line each, and the bar."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        now = time.monotonic()
        jobs = [
            Text(words, style="cyan", no_wrap=True, overflow="ellipsis")
            for words in running_lines(self.run, now, self.console.width)
        ]
        row = Table.grid(padding=(0, 2))
        share = self.run.share_done(now)
        bar = ProgressBar(
            total=1.0,
            completed=self.run.done / max(1, self.run.total) if share is None else share,
            width=BAR_WIDTH,
            complete_style="green",
            finished_style="green",
        )
        row.add_row(bar, Text(count_and_left(self.run, now), no_wrap=True, overflow="ellipsis"))
        return Group(*jobs, row)


def console_on(stream: TextIO, *, color: bool) -> Any:
    """Return a rich console on the terminal `stream`, without automatic highlighting."""
    from rich.console import Console

    return Console(file=stream, highlight=False, no_color=None if color else True)
