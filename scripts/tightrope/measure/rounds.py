"""Time engines in rounds with a block of calls of each, in random order.

Every comparison of times is made of these rounds: a variant with its baseline (`latency`), a
race or a family (`race_rounds`), and engines that differ in one thing (`rounds_of`).
"""

import math
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Protocol

from tightrope.errors import WorkFailed
from tightrope.jobs.child import GRACE_SECONDS, Child, Limits
from tightrope.jobs.progress import ProgressBar
from tightrope.machine.counters import own_seconds
from tightrope.machine.interference import MAX_FOREIGN_CORES, Block, QuietMachine, Windows
from tightrope.measure.timed_engine import TimedEngine
from tightrope.records.record import FEWEST_ROUNDS, Round, WarmUp

# settings of `latency`
Plan = dict[str, Any]
# the seconds per call of each block of an engine, None where it did not run
Blocks = Iterable[list[float] | None]
# of `rounds_of`: rounds that count, which end after so long once there are `FEWEST_ROUNDS`
ROUNDS = 24
MAX_SECONDS = 60.0
# the least of a block, which has at least a call
BLOCK_S = 0.1
WARM_UP_S = 1.0


class Stopwatch:
    """A worker with the time that its engine has used for one shape, and the limit of that time."""

    def __init__(self, worker: Child, max_seconds: float, blocks: Blocks) -> None:
        self.worker = worker
        self.max_seconds = max_seconds
        known = [block for block in blocks if block is not None]
        self.seconds = sum(sum(block) for block in known)
        self.calls = sum(len(block) for block in known)

    def warm_up(self, index: int, plan: Plan) -> WarmUp:
        """Warm up, see `TimedEngine.warm_up`; a window is as long as a default block."""
        calls, window = plan["warmup_calls"], block_seconds(plan)
        seconds = self.left_s if calls is not None else min(plan["warmup_seconds"], self.left_s)
        return self.asked("warm_up", index, calls, seconds, window)

    def block(self, index: int, seconds: float, calls: int) -> Block:
        """Run a block, see `TimedEngine.block`; raises WorkFailed beyond the limit."""
        return self.asked("block", index, seconds, calls, self.left_s)

    @property
    def left_s(self) -> float:
        """Return the seconds until the limit."""
        return self.max_seconds - self.seconds

    def asked(self, *request: Any) -> Any:
        """Return the answer to a request, whose time and calls count."""
        began = time.monotonic()
        answer = self.worker.ask(*request, seconds=self.left_s + GRACE_SECONDS)
        self.seconds += time.monotonic() - began
        self.calls += len(answer.samples_s) if isinstance(answer, Block) else answer.calls
        if self.seconds > self.max_seconds:
            reason = f"too slow ({self.calls} calls in {self.seconds:.0f} s)"
            raise self.worker.failed(reason, transient=False)
        return answer


Clocks = Mapping[str, Stopwatch]


def block_seconds(plan: Plan) -> float:
    """Return the minimum seconds of a block without a fixed number of calls."""
    return plan["min_seconds"] / plan["pairs"]


def block_sizes(plan: Plan) -> tuple[float, list[int]]:
    """Return the minimum seconds of a block, and the minimum calls per block as a repeating list.

    With a fixed number of calls there is no minimum time, and the list sums to that number.
    """
    if plan["calls"] is None:
        return block_seconds(plan), [1]
    pairs = min(plan["pairs"], plan["calls"])
    each, more = divmod(plan["calls"], pairs)
    return 0.0, [each + 1] * more + [each] * (pairs - more)


class Timed(Protocol):
    """What is timed at one shape: it says who runs next, and keeps what was measured.

    `index` is that of the inputs, `draw` the order in a round, `block_s` the least of a block.
    """

    index: int
    draw: random.Random
    block_s: float

    def next_round(self, ready: Clocks, seconds: float) -> dict[str, int]:
        """Return the least calls of a block of each engine in the next round; nothing at the end.

        `ready` are those that can run, `seconds` those since the rounds began.
        """
        ...

    def keep(self, blocks: Mapping[str, Block], window: int) -> None:
        """Record a round that ended in the window with this index."""
        ...


class Running:
    """Engines by name, each in a process of its own while it is `loaded`.

    The reason of a failure begins with the name of the engine where they are `named`. `loads` are
    the answers of the last load.
    """

    def __init__(
        self,
        engines: Mapping[str, TimedEngine],
        limits: Limits,
        machine: QuietMachine,
        *,
        named: bool = False,
    ) -> None:
        self.engines, self.limits, self.machine, self.named = engines, limits, machine, named
        self.workers: dict[str, Child] = {}
        self.loads: dict[str, dict[str, float]] = {}

    @contextmanager
    def loaded(self, names: Iterable[str], began: float | None = None) -> Iterator[None]:
        """Load these engines in their order; the time of their processes counts from `began`.

        One after the other: loading uses more memory and threads than running.
        """
        with ExitStack() as stack:
            for name in names:
                role = name if self.named else ""
                try:
                    child = Child(self.engines[name], self.limits, role, began)
                except WorkFailed as error:  # this job has ended before
                    self.failed(name, error)
                    continue
                self.workers[name] = stack.enter_context(child)
                self.loads[name] = self.asked(name, "load")
            yield
        self.workers.clear()

    def failed(self, name: str, error: WorkFailed) -> None:
        """Raise the failure of an engine."""
        raise error

    def asked(self, name: str, *request: Any) -> Any:
        """Return the answer of an engine, None where it failed and that was not raised."""
        try:
            return self.workers[name].ask(*request)
        except WorkFailed as error:
            return self.failed(name, error)

    def warmed_up(
        self, names: Iterable[str], index: int, plan: Plan, blocks: Mapping[str, Blocks]
    ) -> dict[str, Stopwatch]:
        """Return a stopwatch of each of these engines that is loaded, first called and warmed up.

        `blocks` are those of earlier loads with the inputs `index`.
        """
        clocks = {}
        for name in names:
            if name not in self.workers or self.asked(name, "first_call", index) is None:
                continue
            known = blocks.get(name, ())
            clocks[name] = Stopwatch(self.workers[name], plan["max_seconds"], known)
            try:
                clocks[name].warm_up(index, plan)
            except WorkFailed as error:
                self.failed(name, error)
        return clocks

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of this process and of its engines, running or ended."""
        answers = [self.asked(name, "cpu_seconds") for name in list(self.workers)]
        return own_seconds() + sum(seconds for seconds in answers if seconds is not None)

    def rounds(
        self,
        timed: Timed,
        clocks: Clocks,
        cores: list[float | None],
        began: float,
        *,
        window_s: float | None = None,
    ) -> Iterator[float]:
        """Measure rounds until `timed` ends them; yield the seconds to give back after each.

        Those are lost to other load, up to the rest of the budget of the machine; the others count
        since `began`. The cores that other load used are added to `cores` for each window; with
        `window_s` of 0 each round is one.
        """
        windows = Windows(self.machine.processors, self.cpu_seconds)
        windows.cores = cores
        windows.seconds = windows.seconds if window_s is None else window_s
        while calls := timed.next_round(clocks, time.monotonic() - began):
            blocks = {}
            for name in timed.draw.sample(list(calls), len(calls)):
                try:
                    blocks[name] = clocks[name].block(timed.index, timed.block_s, calls[name])
                except WorkFailed as error:
                    self.failed(name, error)
            timed.keep(blocks, windows.index)
            given, (opened, *_) = 0.0, windows.began
            if (windows.close_when_due() or 0.0) > MAX_FOREIGN_CORES:
                given = self.machine.lose(time.monotonic() - opened)
                given += self.machine.wait_for_idle_gap()
                windows.open()
            began += given
            yield given
        windows.close_when_due(last=True)


class Counted:
    """Rounds of inputs `index` until `ROUNDS` of them count, see `rounds_of`."""

    def __init__(self, index: int) -> None:
        self.index, self.draw, self.block_s = index, random.Random(0), BLOCK_S
        self.counted = 0
        self.blocks: list[Mapping[str, Block]] = []
        self.cores: list[float | None] = []

    def next_round(self, ready: Clocks, seconds: float) -> dict[str, int]:
        """Return a call of each engine, nothing after the rounds or their time."""
        over = self.counted >= FEWEST_ROUNDS and seconds > MAX_SECONDS
        return {} if over or self.counted >= ROUNDS else dict.fromkeys(ready, 1)

    def keep(self, blocks: Mapping[str, Block], window: int) -> None:
        """Record a round, which is a window."""
        self.blocks.append(blocks)


def rounds_of(
    engines: Sequence[TimedEngine],
    limits: Limits,
    machine: QuietMachine,
    title: str,
    indices: Iterable[int] = (0,),
) -> Iterator[list[Round]]:
    """Yield the rounds of each of these inputs, with engines loaded once, in their order.

    Rounds that other load disturbed are repeated while time may be lost. The engines share the
    memory of `limits`. `title` is that of the progress bar. Raises as `Child.ask` does.
    """
    limits = replace(limits, memory_bytes=limits.memory_bytes / len(engines))
    running = Running({str(at): one for at, one in enumerate(engines)}, limits, machine)
    plan: Plan = {"warmup_calls": None, "warmup_seconds": WARM_UP_S, "max_seconds": math.inf}
    plan |= {"min_seconds": BLOCK_S, "pairs": 1}
    with running.loaded(running.engines):
        machine.wait()
        for index in indices:
            clocks = running.warmed_up(running.engines, index, plan, {})
            timed, began = Counted(index), time.monotonic()
            with ProgressBar(title, ROUNDS) as bar:
                for given in running.rounds(timed, clocks, timed.cores, began, window_s=0.0):
                    timed.counted += not given
                    bar.reach(timed.counted)
            yield [
                Round(
                    blocks_s=[blocks[name].samples_s for name in clocks], foreign_cores=cores or 0.0
                )
                for blocks, cores in zip(timed.blocks, timed.cores, strict=False)
            ]
