"""Time calls with one monotonic clock: one after the other, in a window, on streams of a GPU."""

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tightrope.machine.interference import GpuState
from tightrope.records.latency import StreamBlocks

BLOCKS = 5
BLOCK_SECONDS = 0.2
LEAD_SHARE = 0.1
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
