"""Throughput of programs on several streams of a GPU, in a closed loop."""

import gc
import itertools
import time
from collections.abc import Callable
from typing import Any

BLOCKS = 5
BLOCK_SECONDS = 0.2
LEAD_SHARE = 0.1


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

    enabled = gc.isenabled()
    gc.disable()
    try:
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
    finally:
        if enabled:
            gc.enable()
    return calls, ended - began


def blocks_on_streams(
    programs: list[Any],
    inputs: Any,
    *,
    check: Callable[[Any, Any], None] | None,
    state: Callable[[], dict[str, Any] | None],
    limit_seconds: float,
) -> dict[str, Any]:
    """Return `calls`, `seconds` and `gpu` of each of `BLOCKS` blocks.

    `check(outputs, inputs)` raises for outputs of a program that cannot be right; `state()` is
    asked for the state of the GPU after each block. The programs are released at the end.
    """
    each = {"seconds": BLOCK_SECONDS, "limit_seconds": limit_seconds / BLOCKS}
    blocks, states = [], []
    try:
        for program in programs:
            program.enqueue(inputs)
        for program in programs:
            outputs = program.wait()
            if check is not None:
                check(outputs, inputs)
        for _ in range(BLOCKS):
            blocks.append(timed_streams(programs, inputs, **each))
            states.append(state())
    finally:
        for program in programs:
            program.release()
    return {
        "calls": [calls for calls, _ in blocks],
        "seconds": [seconds for _, seconds in blocks],
        "gpu": states,
    }
