"""Where the lines of a run go: a plain stream, or a terminal with a bar below them."""

import os
import select
import sys
import threading
import time
from contextlib import suppress
from typing import Any, TextIO

from tightrope.terminal.lines import Line, count_and_left, running_lines
from tightrope.terminal.run import Run

# a measurement runs beside this process: it draws seldom
REDRAW_SECONDS = 1.0
REDRAW_SECONDS_MEASURING = 5.0
MEASURING = ("measure_", "compare_", "race_", "search_")
BAR_WIDTH = 30
STDERR = 2
ENDING_SECONDS = 2.0


class PlainScreen:
    """Lines on a stream that is no terminal: no bar, no escapes."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def start(self, run: Run) -> None:
        """Nothing moves here."""

    def show(self, lines: list[Line]) -> None:
        """Print the lines."""
        for line in lines:
            print(line.text, file=self.stream, flush=True)

    def redraw(self) -> None:
        """Nothing moves here."""

    def stop(self) -> None:
        """Nothing moves here."""


class LiveScreen:
    """Lines on the terminal of descriptor 2, below them the running jobs and a bar.

    While the bar is there, descriptor 2 is a pipe: what jobs write to it is printed above the
    bar. Lines that tell how much is left are left out: the bar says that.
    """

    def __init__(self, *, color: bool) -> None:
        self.color = color
        self.run: Run | None = None
        self.live: Any = None
        self.lock = threading.RLock()

    def start(self, run: Run) -> None:
        """Draw the bar and take what goes to descriptor 2."""
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
        """Print the lines, above the bar where there is one."""
        with self.lock:
            for line in lines:
                self.print(line)
            self.redraw()

    def print(self, line: Line) -> None:
        """Print one line; rich, which takes a while to import, only for the bar and for colors."""
        if self.live is None and not line.style:
            return print(line.text, file=sys.stderr, flush=True)
        from rich.text import Text

        console = console_on(sys.stderr, color=self.color) if self.live is None else self.console
        console.print(Text(*line), soft_wrap=True)

    def redraw(self) -> None:
        """Draw the bar as the run is now."""
        with self.lock:
            if self.live is not None:
                self.live.refresh()

    def stop(self) -> None:
        """Take the bar away and give descriptor 2 back."""
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
        """Print what arrives in the pipe, and redraw now and then, until the screen stops."""
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
                # a terminal that is gone shows nothing; the run goes on
                with suppress(OSError):
                    self.redraw()

    def forward(self, lines: list[bytes]) -> None:
        """Print lines that jobs wrote, without those on how much is left."""
        texts = [line.decode(errors="replace").rstrip() for line in lines]
        told = [Line(text) for text in texts if not text.endswith(" left")]
        with suppress(OSError):
            self.show(told)

    def pause(self) -> float:
        """Seconds until the next drawing."""
        if self.stopping.is_set():
            return 0.0
        rules = [job.rule for job in list(self.run.running.values())]
        measuring = any(rule.startswith(MEASURING) for rule in rules)
        return REDRAW_SECONDS_MEASURING if measuring else REDRAW_SECONDS

    def picture(self) -> Any:
        """The running jobs, a line each, and the bar."""
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
        bar = ProgressBar(
            total=max(1, self.run.total),
            completed=self.run.done,
            width=BAR_WIDTH,
            complete_style="green",
            finished_style="green",
        )
        row.add_row(bar, Text(count_and_left(self.run, now), no_wrap=True, overflow="ellipsis"))
        return Group(*jobs, row)


def console_on(stream: TextIO, *, color: bool) -> Any:
    """A console of rich on the terminal `stream`, which marks up nothing by itself."""
    from rich.console import Console

    return Console(file=stream, highlight=False, no_color=None if color else True)
