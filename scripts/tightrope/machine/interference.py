"""Other load: wait until it is gone, and mark the pairs of blocks that it disturbed.

They are marked from kernel counters and never from the times.

Leaving out slow blocks would make every engine look faster. Threads of an engine may also wait for
each other, which is part of its latency. So a pair is disturbed only where its threads waited for a
processor while other programs used one. On a GPU a pair is disturbed too where the GPU was slowed
down or shared.
"""

import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import psutil
from msgspec import Struct

from tightrope.machine.counters import IDLE, TICKS, counted_seconds

# largest share of a block's seconds that its threads may wait, or that may be stolen
MAX_WAITED_SHARE = 0.05
# limit of involuntary context switches per second and thread, where waiting is not reported
MAX_PREEMPTIONS_PER_S = 100
# cores that other programs may use of the processors that engines are pinned to
MAX_FOREIGN_CORES = 0.10
# what slows a GPU down for a time, of `nvml.THROTTLES`: at its power cap it runs as it always
# does under that load
SLOWDOWNS = frozenset(
    {"hardware slowdown", "thermal slowdown", "hardware thermal slowdown", "power brake"}
)
# standard deviation of the foreign cores of a window that clock ticks cause
BLUR = 0.04
# cores that other programs may use on a quiet machine
QUIET_CORES = 0.25
# the same for a short sample, which clock ticks make less exact
GAP_CORES = 0.5
# interval between two samples of running programs
LOOK_SECONDS = 0.5
# what the jobs of a run have lost so far, a line each time, and whether one has said so
OF_RUN, TOLD = Path(".snakemake/quiet_seconds"), "told"
LOUDEST = 3
# programs below this number of cores are not reported
NAMED_CORES = 0.05
INTERPRETERS = ("python", "java", "node")
# options that take the program text as an argument
INLINE = ("-c", "-e")


class GpuState(Struct, kw_only=True, forbid_unknown_fields=True):
    """State of a GPU directly after a block, see `nvml.GpuReader.read`."""

    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttled: list[str] | None = None
    application_clocks: bool | None = None
    other_processes: int | None = None
    computing_processes: int | None = None
    memory_bytes: int | None = None


class Block(Struct, kw_only=True):
    """A block of calls, see `TimedEngine.block`."""

    samples_s: list[float]
    seconds: float
    waited_s: float | None
    preempted: int
    stolen_s: float
    idle_s: float = 0.0
    energy_j: float | None = None
    gpu: GpuState | None = None


class Counters(Struct, kw_only=True, forbid_unknown_fields=True):
    """What the kernel counted of a pair of blocks or of one: the larger value of its blocks.

    `waited` and `stolen` are shares of a block's seconds; `waited` is None where the kernel does
    not report it. `preempted` is per second and thread, `window` the index in `Windows`. On a GPU
    also `throttled` and `computing_processes`, see `nvml.GpuReader.read`, and the clock of each
    block.
    """

    waited: float | None
    stolen: float
    preempted: float
    window: int
    throttled: list[str] | None = None
    computing_processes: int | None = None
    sm_clocks_mhz: list[int | None] = []


def of_pair(blocks: Sequence[Block], threads: int, window: int) -> Counters:
    """Return the counters of a pair of blocks, or of one."""
    waited = [one.waited_s / one.seconds for one in blocks if one.waited_s is not None]
    states = [one.gpu for one in blocks if one.gpu]
    computing = [one.computing_processes for one in states if one.computing_processes is not None]
    throttled = {reason for one in states for reason in one.throttled or ()}
    return Counters(
        waited=max(waited) if len(waited) == len(blocks) else None,
        stolen=max(one.stolen_s / one.seconds for one in blocks),
        # a short block may be preempted once
        preempted=max((one.preempted - 1) / (one.seconds * threads) for one in blocks),
        window=window,
        throttled=sorted(throttled) if states else None,
        computing_processes=max(computing, default=None),
        sm_clocks_mhz=[one.sm_clock_mhz for one in states],
    )


def disturbance(pair: Counters, foreign_cores: Sequence[float | None]) -> str | None:
    """Return why a pair does not count, None where it counts.

    The reasons are `throttled`, `shared`, `stolen`, `waited` and `preempted`.

    `foreign_cores` are those of the windows. The window of the pair and both neighbours are
    checked: a burst that begins at the end of a window shows in the next one, and after a burst
    the threads of an engine may share a processor for a while. None or a missing window is
    unknown. Where the window of the pair is unknown, waiting or preempted threads alone mark the
    pair as disturbed.
    """
    if reason := gpu_disturbance(pair):
        return reason
    if pair.stolen > MAX_WAITED_SHARE:
        return "stolen"
    place = pair.window
    if place < len(foreign_cores) and foreign_cores[place] is not None:
        near = foreign_cores[max(0, place - 1) : place + 2]
        if max(cores or 0.0 for cores in near) <= MAX_FOREIGN_CORES:
            return None
    if pair.waited is not None:
        return "waited" if pair.waited > MAX_WAITED_SHARE else None
    return "preempted" if pair.preempted > MAX_PREEMPTIONS_PER_S else None


def gpu_disturbance(facts: Counters | GpuState | None) -> str | None:
    """Return `throttled` or `shared` for a GPU that was slowed down or shared, None for another.

    A process that holds memory there and does not compute, such as an open notebook, costs no time.
    `facts` are those of a pair, or a state of the GPU; without a GPU they say nothing of it.
    """
    if facts is None:
        return None
    if facts.throttled and not SLOWDOWNS.isdisjoint(facts.throttled):
        return "throttled"
    return "shared" if facts.computing_processes else None


def fewest_pairs(pairs: int, plan: Mapping[str, Any]) -> int:
    """Return the minimum of undisturbed pairs for a result, given the number of measured pairs.

    More than half of `plan["pairs"]`: a pair that was disturbed near the time limit, or with a
    fixed number of calls, is not measured again.
    """
    return min(pairs, max(2, min(plan["pairs"], pairs) // 2 + 1))


def window_seconds(processors: int) -> float:
    """Return the length of a window for a number of processors: 0.14 s for 2, 0.41 s for 16.

    Short, so that gaps between bursts of another program count. Idle time of each processor is
    counted in whole ticks (10 ms). The error of a difference is triangular within one tick, with
    standard deviation tick / sqrt(6).
    """
    return math.sqrt(processors / 6) / TICKS / BLUR


class Windows:
    """Cores of these processors that other programs used, over windows of `seconds`.

    `own_seconds` returns the CPU seconds that the timed engines and this process have used so far.
    Time that is neither idle nor theirs is foreign: other programs, the kernel, a hypervisor.
    """

    def __init__(self, processors: list[int], own_seconds: Callable[[], float]) -> None:
        self.processors = processors
        self.own_seconds = own_seconds
        self.seconds = window_seconds(len(processors))
        self.cores: list[float | None] = []
        self.open()

    @property
    def index(self) -> int:
        """Return the index of the open window in `cores`."""
        return len(self.cores)

    def open(self) -> None:
        """Open a window now; time since the last one closed is in no window."""
        self.began = self.counted()

    def counted(self) -> tuple[float, float, float]:
        """Return the clock, idle seconds of the processors, and own CPU seconds."""
        idle = counted_seconds(self.processors, IDLE)
        return time.monotonic(), idle, self.own_seconds()

    def close_when_due(self, *, last: bool = False) -> float | None:
        """Close the window once it is long enough and open the next; return its foreign cores.

        The `last` window closes at half that length too; a shorter one is recorded as unknown.
        """
        if time.monotonic() - self.began[0] < (self.seconds / 2 if last else self.seconds):
            if last:
                self.cores.append(None)
            return None
        return self.close()

    def close(self) -> float:
        """Close the window now and open the next; return its foreign cores."""
        seconds, idle, own = (
            now - then for now, then in zip(self.counted(), self.began, strict=True)
        )
        foreign = max(0.0, (len(self.processors) * seconds - idle - own) / seconds)
        self.cores.append(foreign)
        self.open()
        return foreign


class QuietMachine:
    """Time budget that a job may lose to other load before it continues regardless.

    `seconds` is the budget, `processors` those that must be quiet; messages about waiting go to
    `terminal`. The jobs of a run share it through the file `run`, as far as they see the same one,
    and only the first of them that waits says so. `lost_s` is the time lost so far, to waiting and
    to disturbed pairs. `busiest` maps the names of the busiest programs to the most cores that each
    used.
    """

    def __init__(
        self, processors: list[int], seconds: float, terminal: TextIO, run: Path | None = None
    ) -> None:
        self.processors = processors
        self.run = run
        lost = run.read_text().split() if run and run.is_file() else []
        self.told = TOLD in lost
        self.seconds = max(0.0, seconds - sum(float(one) for one in lost if one != TOLD))
        self.terminal = terminal
        self.lost_s = 0.0
        self.busiest: dict[str, float] = {}
        self.looked = -math.inf
        psutil.process_iter.cache_clear()  # the first look begins to count

    @property
    def left_s(self) -> float:
        """Return the rest of the time budget."""
        return max(0.0, self.seconds - self.lost_s)

    def lose(self, seconds: float) -> float:
        """Count `seconds` as lost; return the part that the budget gives back to the job."""
        given = min(seconds, self.left_s)
        self.lost_s += seconds
        self.note(f"{given:.3f}")
        if given and not self.left_s:
            words = "the machine stays busy: it is measured as it is, without waiting further"
            print(f"{words} (latency.quiet_seconds)", file=self.terminal, flush=True)
        return given

    def wait(self) -> float:
        """Wait until the processors are quiet or the budget is spent; return seconds given back.

        Nothing of this job may run meanwhile.
        """
        return self.wait_until(window_seconds(len(self.processors)), QUIET_CORES)

    def wait_for_idle_gap(self) -> float:
        """Wait as `wait` does, but for a shorter quiet time, such as the gap between two bursts."""
        return self.wait_until(window_seconds(len(self.processors)) / 5, GAP_CORES)

    def wait_until(self, look_seconds: float, cores: float) -> float:
        """Wait until at most `cores` are in use for `look_seconds`; return seconds given back."""
        began, busy = time.monotonic(), False
        while self.left_s > time.monotonic() - began:
            if foreign_cores(self.processors, look_seconds) <= cores:
                break
            busy = True
            self.look_at_programs(began)
        waited = time.monotonic() - began
        return self.lose(waited) if busy else min(waited, self.left_s)

    def look_at_programs(self, began: float) -> None:
        """Record the busiest programs since the last look, and report them the first time.

        The wait `began` at that moment of the monotonic clock.
        """
        now = time.monotonic()
        if now - self.looked < LOOK_SECONDS:
            return
        programs, self.looked = busiest_programs(), now
        for name, cores in programs:
            self.busiest[name] = max(self.busiest.get(name, 0.0), cores)
        first = sorted(self.busiest, key=lambda name: -self.busiest[name])[:LOUDEST]
        self.busiest = {name: self.busiest[name] for name in first}
        if programs and not self.told:
            rest = max(0.0, self.left_s - (now - began))
            words = (
                f"waiting for a quiet machine: {in_words(programs)}; for at most {rest:.0f} s more "
                f"{'in this run ' if self.run else ''}(latency.quiet_seconds)"
            )
            print(words, file=self.terminal, flush=True)
            self.told = True
            self.note(TOLD)

    def note(self, word: str) -> None:
        """Add a word to the file of the run, if there is one."""
        if self.run:
            with suppress(OSError), self.run.open("a") as file:
                print(word, file=file)


def foreign_cores(processors: list[int], seconds: float) -> float:
    """Return the cores of these processors in use while this process sleeps for `seconds`."""
    began, idle = time.monotonic(), counted_seconds(processors, IDLE)
    time.sleep(seconds)
    elapsed = time.monotonic() - began
    return len(processors) - (counted_seconds(processors, IDLE) - idle) / elapsed


def busiest_programs() -> list[tuple[str, float]]:
    """Return the programs that used the most cores since the last call, with those, most first.

    Not this one and its workers, nor those that have started since.
    """
    found, own = [], {os.getpid(), *(one.pid for one in multiprocessing.active_children())}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            # since the last time, which psutil keeps; 0 the first time
            cores = 0.0 if process.pid in own else process.cpu_percent() / 100
            if cores >= NAMED_CORES:
                found.append((short_name(process), cores))
    return sorted(found, key=lambda one: -one[1])[:LOUDEST]


def short_name(process: psutil.Process) -> str:
    """Return the program name, and for an interpreter also the file or module that it runs."""
    name, words = process.name(), process.cmdline()[1:3]
    if not name.startswith(INTERPRETERS) or set(INLINE) & set(words):
        return name
    files = (Path(word).name for word in words if not word.startswith("-"))
    return " ".join([name, *list(files)[:1]])


def in_words(programs: Iterable[tuple[str, float]]) -> str:
    """Format the programs with the share of a core that each used."""
    return ", ".join(f"{name} ({100 * cores:.0f} % of a core)" for name, cores in programs)
