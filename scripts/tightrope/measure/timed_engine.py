"""Time one engine in a child process that answers requests of the measuring process.

Its calls are timed with one monotonic clock: one after the other, in a window, on streams of a GPU.
"""

import gc
import itertools
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tightrope.artifacts.manifest import classes_of, read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays
from tightrope.machine.cores import let_threads_spin, pinned_processors
from tightrope.machine.counters import EnergyMeter, counters, gpu_meter, package_meter, settle
from tightrope.machine.interference import Block, GpuState
from tightrope.machine.nvml import GpuReader, held_gpu
from tightrope.machine.processes import peak_rss_bytes
from tightrope.measure.accuracy import check_logits
from tightrope.records.latency import LongBlock, StreamBlocks
from tightrope.records.record import WarmUp
from tightrope.variants import parse

Run = Callable[[Any], Any]
# share of the timed seconds above which a thread counts as busy
BUSY = 0.10
STABLE = 0.05
LEAD_SHARE = 0.1
DEVICE_SECONDS = 0.2
FEWEST_CALLS, MOST_CALLS = 5, 1000
BLOCKS = 5
BLOCK_SECONDS = 0.2
# seconds of the timed calls, and before them
PLAIN_S, WARM_UP_S = 0.3, 0.1
FEWEST = 3


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep the garbage collector off, which would run in the middle of a call."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def timed_calls(
    run: Callable[[Any], Any], inputs: Any, *, seconds: float, calls: int, limit_seconds: float
) -> list[float]:
    """Return the seconds per call of at least `calls` calls over at least `seconds`.

    After the first call, `limit_seconds` overrides both. The garbage collector is off meanwhile.
    """
    clock = time.perf_counter
    samples: list[float] = []
    with without_collector():
        start = end = clock()
        while (end - start < seconds or len(samples) < calls) and (
            end - start < limit_seconds or not samples
        ):
            begin = clock()
            run(inputs)
            end = clock()
            samples.append(end - begin)
    return samples


def timed_streams(
    programs: list[Any], inputs: Any, *, seconds: float, limit_seconds: float
) -> tuple[int, float]:
    """Return the number of calls that ended in the returned seconds, at least `seconds`.

    All programs have a call queued; when the oldest ends, its program gets the next one. The clock
    runs from the end of a call to the end of a later one, so that filling the queues and emptying
    them do not count. It stops after `limit_seconds` where calls are slower. The garbage collector
    is off meanwhile.
    """
    turns = itertools.cycle(programs)

    def end_of_oldest() -> float:
        program = next(turns)
        program.wait()
        now = time.perf_counter()
        program.enqueue(inputs)
        return now

    with without_collector():
        started = time.perf_counter()
        for program in programs:
            program.enqueue(inputs)
        began = end_of_oldest()
        while began - started < LEAD_SHARE * seconds:
            began = end_of_oldest()
        calls, ended = 0, began
        while ended - began < seconds and (calls == 0 or ended - started < limit_seconds):
            ended, calls = end_of_oldest(), calls + 1
        for program in programs:
            program.wait()
    return calls, ended - began


def blocks_on_streams(
    programs: list[Any],
    inputs: Any,
    *,
    check: Callable[[Any, Any], None] | None,
    state: Callable[[], GpuState | None],
    limit_seconds: float,
) -> StreamBlocks:
    """Return what is measured of `BLOCKS` blocks.

    `check(outputs, inputs)` raises for outputs of a program that cannot be right; `state()` is
    asked for the state of the GPU after each block. The programs are released at the end.
    """
    each = {"seconds": BLOCK_SECONDS, "limit_seconds": limit_seconds / BLOCKS}
    found = StreamBlocks(streams=len(programs))
    try:
        for program in programs:
            program.enqueue(inputs)
        for program in programs:
            outputs = program.wait()
            if check is not None:
                check(outputs, inputs)
        for _ in range(BLOCKS):
            calls, seconds = timed_streams(programs, inputs, **each)
            found.calls.append(calls)
            found.seconds.append(seconds)
            found.gpu.append(state())
    finally:
        for program in programs:
            program.release()
    return found


def closed_loop(
    run: Callable[[Any], Any], inputs: Any, *, start: float, seconds: float, blocks: int
) -> list[list[float]]:
    """Return the seconds per call of the calls that ended in each of the `blocks` of a window.

    The window begins at `start` of `time.perf_counter`, which all processes of a Linux machine
    share, and has `seconds`. Calls run before it begins and until it has ended. Those that end
    outside it, and the first that ends in it, do not count. The time of a call is that since the
    end of the call before. The garbage collector is off meanwhile.
    """
    clock = time.perf_counter
    found: list[list[float]] = [[] for _ in range(blocks)]
    length, stop = seconds / blocks, start + seconds
    with without_collector():
        end = clock()
        while end < start:
            run(inputs)
            end = clock()
        while end < stop:
            before = end
            run(inputs)
            end = clock()
            place = int((end - start) / length)
            if place < blocks:
                found[place].append(end - before)
    return found


def mean_call(run: Callable[[Any], Any], inputs: Any, *, seconds: float = PLAIN_S) -> float:
    """Return the mean seconds of a call, over about `seconds` after a warm-up."""
    warm_up = min(WARM_UP_S, seconds)
    timed_calls(run, inputs, seconds=warm_up, calls=1, limit_seconds=warm_up)
    return statistics.fmean(
        timed_calls(run, inputs, seconds=seconds, calls=FEWEST, limit_seconds=10 * seconds)
    )


class TimedEngine:
    """Engine that is loaded in the child and called there with the given inputs.

    `load` returns `run` and the seconds of import and load; it runs with the process pinned to
    `processors`. `check(outputs, inputs)` raises for outputs that cannot be right. Energy is that
    of `device`, `cpu` or `cuda`. The methods are the requests; `index` selects the inputs.
    """

    def __init__(
        self,
        load: Callable[[], tuple[Run, dict[str, float]]],
        inputs: list[Any],
        processors: list[int],
        check: Callable[[Any, Any], None] | None = None,
        *,
        device: str = "cpu",
    ) -> None:
        self.loader = load
        self.inputs = inputs
        self.processors = processors
        self.check = check
        self.device_name = device
        self.run: Run  # after `load`
        self.meter: EnergyMeter | None = None
        self.gpu: GpuReader | None = None
        self.first_s = [0.0] * len(inputs)
        self.typical_s = [0.0] * len(inputs)
        self.used: Counter[int] = Counter()
        self.timed_s = 0.0
        self.settled_s: float | None = None

    def __call__(self, request: str, *arguments: Any) -> Any:
        """Answer a request, named as one of the methods below."""
        return getattr(self, request)(*arguments)

    def load(self) -> dict[str, float]:
        """Load the engine; return the seconds of importing the runtime and of loading."""
        os.sched_setaffinity(0, self.processors)
        let_threads_spin()
        self.run, seconds = self.loader()
        if self.device_name == "cuda":
            gpu = held_gpu()
            self.meter, self.gpu = gpu_meter(gpu), GpuReader(gpu) if gpu else None
        else:
            self.meter = package_meter()
        return seconds

    def first_call(self, index: int) -> float:
        """Return the seconds of the first call; its outputs are checked afterwards."""
        began = time.perf_counter()
        outputs = self.run(self.inputs[index])
        seconds = self.first_s[index] = time.perf_counter() - began
        if self.check is not None:
            self.check(outputs, self.inputs[index])
        return seconds

    def warm_up(self, index: int, calls: int | None, seconds: float, window: float) -> WarmUp:
        """Make warm-up calls: exactly `calls`, or with None until stable or for `seconds`.

        Stable: the medians of two consecutive windows of `window` seconds are within 5 %; a first
        call longer than a window counts as a window. Returns the number of `calls`, their
        `seconds`, and whether they were `stable` (None with fixed calls).
        """
        began = time.perf_counter()
        run, inputs = self.run, self.inputs[index]
        if calls is not None:
            samples = timed_calls(run, inputs, seconds=0.0, calls=calls, limit_seconds=seconds)
            medians = []
        else:
            first = self.first_s[index]
            samples, medians = [], [first] if first > window else []
            while not stable(medians) and (left := began + seconds - time.perf_counter()) > 0:
                limit = min(window, left)
                new = timed_calls(run, inputs, seconds=limit, calls=1, limit_seconds=limit)
                samples += new
                medians.append(statistics.median(new))
        self.typical_s[index] = statistics.median(samples[-9:]) if samples else 0.0
        settle()
        return WarmUp(
            calls=len(samples),
            seconds=time.perf_counter() - began,
            stable=None if calls is not None else stable(medians),
        )

    def block(self, index: int, seconds: float, calls: int, limit: float) -> Block:
        """Time at least `calls` for at least `seconds`, and for at most about `limit` seconds.

        Caches are cold after another engine ran: where a call is shorter than the block, calls in
        a lead-in of a tenth of the block are not kept. Returns `samples_s`, the counters over
        their `seconds`, see `counters.Counters`, `idle_s`: CPU seconds that this process used
        since its last block, `energy_j`: joules, None where the block is too short for the counter
        or there is none, and `gpu`: the state of the GPU directly after the calls, None on a CPU.
        """
        run, inputs = self.run, self.inputs[index]
        idle = 0.0 if self.settled_s is None else time.process_time() - self.settled_s
        if self.typical_s[index] < seconds:
            timed_calls(run, inputs, seconds=LEAD_SHARE * seconds, calls=1, limit_seconds=limit)
        before = counters()
        samples, elapsed, joules = self.metered_calls(index, seconds, calls, limit)
        counted = counters().since(before)
        state = self.state()
        self.used.update(counted.threads)
        self.timed_s += elapsed
        settle()
        self.settled_s = time.process_time()
        return Block(
            samples_s=samples,
            seconds=elapsed,
            waited_s=counted.waited_s,
            preempted=counted.preempted,
            stolen_s=counted.stolen_s,
            idle_s=idle,
            energy_j=joules,
            gpu=state,
        )

    def state(self) -> GpuState | None:
        """Return the state of the GPU now, None on a CPU."""
        return GpuState(**self.gpu.read()) if self.gpu else None

    def plain_calls(self, index: int, seconds: float, calls: int, limit: float) -> dict[str, Any]:
        """Time calls as `block` does, with nothing before the first or between them.

        Returns `samples_s`, and `began_s` and `ended_s` of `time.perf_counter`, which all processes
        of a Linux machine share.
        """
        began = time.perf_counter()
        samples = timed_calls(
            self.run, self.inputs[index], seconds=seconds, calls=calls, limit_seconds=limit
        )
        return {"samples_s": samples, "began_s": began, "ended_s": time.perf_counter()}

    def pace(self, index: int) -> float:
        """Return the median seconds of the last calls of the warm-up."""
        return self.typical_s[index]

    def loop(self, index: int, start: float, seconds: float, blocks: int) -> dict[str, Any]:
        """Return `blocks_s` of `closed_loop`, and `waited_s`: seconds without a processor.

        `waited_s` is that of all threads of this process, and None where the kernel does not
        report it; `late_s` is by how much the first call began after the window.
        """
        late = max(0.0, time.perf_counter() - start)
        before = counters()
        found = closed_loop(
            self.run, self.inputs[index], start=start, seconds=seconds, blocks=blocks
        )
        waited = counters().since(before).waited_s
        settle()
        return {"blocks_s": found, "waited_s": waited, "late_s": late}

    def metered_calls(
        self, index: int, seconds: float, calls: int, limit: float
    ) -> tuple[list[float], float, float | None]:
        """Return the seconds of calls, those of all, and their joules as far as counters show."""
        before, began = self.meter.read() if self.meter else [], time.perf_counter()
        samples = timed_calls(
            self.run, self.inputs[index], seconds=seconds, calls=calls, limit_seconds=limit
        )
        elapsed = time.perf_counter() - began
        if self.meter is None or elapsed < self.meter.shortest_s:
            return samples, elapsed, None
        return samples, elapsed, self.meter.joules_since(before)

    def long_block(self, index: int, limit: float) -> LongBlock | None:
        """Run calls for as long as the energy counter needs; None where each block is enough.

        Calls in a lead-in of a tenth of that time come first, so that the counter has seen them
        alone.
        """
        if self.meter is None or not self.meter.shortest_s:
            return None
        run, inputs, seconds = self.run, self.inputs[index], self.meter.shortest_s
        timed_calls(run, inputs, seconds=LEAD_SHARE * seconds, calls=1, limit_seconds=limit)
        samples, _, joules = self.metered_calls(index, seconds, 1, limit)
        return LongBlock(energy_j=joules, calls=len(samples), gpu=self.state())

    def device(self, index: int) -> list[float] | None:
        """Return seconds of calls on inputs that are on the GPU, None for an engine on the CPU.

        The calls take about `DEVICE_SECONDS` in total; there are `FEWEST_CALLS` to `MOST_CALLS`.
        """
        timed = getattr(self.run, "device_seconds", None)
        if timed is None:
            return None
        calls = int(DEVICE_SECONDS / max(self.typical_s[index], DEVICE_SECONDS / MOST_CALLS))
        return timed(self.inputs[index], max(calls, FEWEST_CALLS))

    def streams(self, index: int, count: int, limit: float) -> StreamBlocks | None:
        """Return blocks of calls on `count` streams, see `blocks_on_streams`; None without streams.

        They are in no count of time and threads, and take at most about `limit` seconds.
        """
        on_streams = getattr(self.run, "on_streams", None)
        if on_streams is None:
            return None
        programs, inputs = on_streams(self.inputs[index], count)
        return blocks_on_streams(
            programs, inputs, check=self.check, state=self.state, limit_seconds=limit
        )

    def threads(self) -> dict[str, float]:
        """Return `busy` threads and used `cores` of the blocks since the last such request.

        `busy` counts threads above the share `BUSY`; `cores` is CPU time over wall time.
        """
        wall = self.timed_s or 1.0
        busy = sum(seconds > BUSY * wall for seconds in self.used.values())
        cores = sum(self.used.values()) / wall
        self.used.clear()
        self.timed_s, self.settled_s = 0.0, None
        return {"busy": busy, "cores": cores}

    # CPU seconds of all threads of this process so far
    cpu_seconds = staticmethod(time.process_time)
    # peak resident memory of this process or of a compiler that it ran
    peak_rss_bytes = staticmethod(peak_rss_bytes)


def stable(medians: list[float]) -> bool:
    """Return whether the last two medians are within 5 % of each other."""
    return len(medians) > 1 and abs(medians[-1] / medians[-2] - 1) < STABLE


def timed_engine(
    engine: Path,
    checkpoint: Path | str,
    inputs: list[Arrays],
    *,
    threads: int,
    on: list[int] | None = None,
) -> TimedEngine:
    """Return an engine, not loaded yet, with `inputs`; it runs `on` some processors.

    By default those to which an engine of so many threads is pinned.
    `engine` and `checkpoint` are manifests; logits of other classes than the checkpoint's fail.
    """
    device = parse(read_manifest(engine, EngineManifest)["variant"]).device
    load = partial(load_engine, engine, threads=threads)
    check = partial(check_logits, classes=classes_of(checkpoint))
    return TimedEngine(load, inputs, on or pinned_processors(threads), check, device=device)
