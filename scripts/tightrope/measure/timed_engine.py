"""The process in which one engine is timed: what it answers to who measures."""

import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from tightrope.machine.foreign_load import counters, settle
from tightrope.machine.processes import peak_rss_bytes
from tightrope.measure.timing import timed_calls

Run = Callable[[Any], Any]
# the share of the timed seconds from which on a thread counts as busy
BUSY = 0.10
STABLE = 0.05
LEAD_SHARE = 0.1
DEVICE_SECONDS = 0.2
FEWEST_CALLS, MOST_CALLS = 5, 1000


class TimedEngine:
    """One engine, loaded in the child and called there with the given inputs.

    `load` gives `run` and seconds of its import and load; it is called with the process pinned
    to `processors`. `check` raises where the outputs for one of the `inputs` cannot be right.
    The methods are the requests; `index` is the place of the inputs.
    """

    def __init__(
        self,
        load: Callable[[], tuple[Run, dict[str, float]]],
        inputs: list[Any],
        processors: list[int],
        check: Callable[[Any, Any], None] | None = None,
    ) -> None:
        self.loader = load
        self.inputs = inputs
        self.processors = processors
        self.check = check
        self.run: Run | None = None
        self.first_s = [0.0] * len(inputs)
        self.typical_s = [0.0] * len(inputs)
        self.used: Counter[int] = Counter()
        self.timed_s = 0.0
        self.settled_s: float | None = None

    def __call__(self, request: str, *arguments: Any) -> Any:
        """Answer one of the requests named as the methods below."""
        return getattr(self, request)(*arguments)

    def load(self) -> dict[str, float]:
        """Seconds of importing the runtime and of loading the engine."""
        os.sched_setaffinity(0, self.processors)
        self.run, seconds = self.loader()
        return seconds

    def first_call(self, index: int) -> float:
        """Seconds of the first call; its outputs are checked after it."""
        began = time.perf_counter()
        outputs = self.run(self.inputs[index])
        seconds = self.first_s[index] = time.perf_counter() - began
        if self.check is not None:
            self.check(outputs, self.inputs[index])
        return seconds

    def warm_up(self, index: int, calls: int | None, seconds: float, window: float) -> Any:
        """Calls that are not kept: exactly `calls`, or else until stable or for `seconds`.

        Stable: the medians of two `window`s (seconds) in a row are within 5 %; a first call that
        was longer than a window is one. Gives the number of `calls`, their `seconds`, and whether
        they were `stable` (None with fixed calls).
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
        return {
            "calls": len(samples),
            "seconds": time.perf_counter() - began,
            "stable": None if calls is not None else stable(medians),
        }

    def block(self, index: int, seconds: float, calls: int, limit: float) -> dict[str, Any]:
        """At least so many `calls` for at least `seconds`, at most about `limit` seconds.

        The first calls after another engine had the processor find cold caches: where a call is
        shorter than the block, a tenth of the block goes by before the first that is kept.
        Gives `samples_s`, what was counted in their `seconds`, see `foreign_load.Counters`, and
        `idle_s`: CPU seconds that this process used since its last block.
        """
        run, inputs = self.run, self.inputs[index]
        idle = 0.0 if self.settled_s is None else time.process_time() - self.settled_s
        if self.typical_s[index] < seconds:
            timed_calls(run, inputs, seconds=LEAD_SHARE * seconds, calls=1, limit_seconds=limit)
        before = counters()
        began = time.perf_counter()
        samples = timed_calls(run, inputs, seconds=seconds, calls=calls, limit_seconds=limit)
        elapsed = time.perf_counter() - began
        counted = counters().since(before)
        self.used.update(counted.threads)
        self.timed_s += elapsed
        settle()
        self.settled_s = time.process_time()
        return {
            "samples_s": samples,
            "seconds": elapsed,
            "waited_s": counted.waited_s,
            "preempted": counted.preempted,
            "stolen_s": counted.stolen_s,
            "idle_s": idle,
        }

    def device(self, index: int) -> list[float] | None:
        """Seconds of calls on inputs that are on the GPU, None for an engine on the CPU.

        As many calls as take about `DEVICE_SECONDS`.
        """
        timed = getattr(self.run, "device_seconds", None)
        if timed is None:
            return None
        calls = int(DEVICE_SECONDS / max(self.typical_s[index], DEVICE_SECONDS / MOST_CALLS))
        return timed(self.inputs[index], max(calls, FEWEST_CALLS))

    def threads(self) -> dict[str, float]:
        """`busy`: threads that worked in the blocks since the last request; `cores`: CPU time
        of all threads in them over their wall time."""
        wall = self.timed_s or 1.0
        busy = sum(seconds > BUSY * wall for seconds in self.used.values())
        cores = sum(self.used.values()) / wall
        self.used.clear()
        self.timed_s, self.settled_s = 0.0, None
        return {"busy": busy, "cores": cores}

    def cpu_seconds(self) -> float:
        """CPU seconds of all threads of this process so far."""
        return time.process_time()

    def peak_rss_bytes(self) -> int:
        """As `peak_rss_bytes`: with the interpreter, and with compilers that it ran."""
        return peak_rss_bytes()


def stable(medians: list[float]) -> bool:
    """Whether the last two medians are within 5 % of each other."""
    return len(medians) > 1 and abs(medians[-1] / medians[-2] - 1) < STABLE
