"""Which pairs of blocks other load disturbed: counted, never judged from the times themselves.

A block is not left out because it was slow, for that would make every engine look faster. Its
threads may also wait for each other, which is the engine's own. So a pair is disturbed only where
its threads waited for a processor while other programs were seen to use one.
"""

import math
import time
from collections.abc import Callable
from typing import Any

from tightrope.machine.foreign_load import TICKS, idle_seconds

# the share of a block's seconds that its threads may wait, or that may be stolen
WAITED = 0.05
# involuntary context switches per second and thread, where waiting is not counted
PREEMPTED = 100
# cores of the engines' processors that other programs may use
FOREIGN = 0.10
# standard deviation by which the ticks of idle time blur the foreign cores of a window
BLUR = 0.04

Facts = dict[str, Any]


def of_pair(blocks: list[Facts], threads: int, window: int) -> Facts:
    """What was counted of a pair: the larger of its blocks counts, see `TimedEngine.block`.

    `waited` and `stolen` are shares of a block's seconds, `waited` None where the kernel does not
    count it; `preempted` is per second and thread, `window` the index of its `Windows`.
    """
    waited = [one["waited_s"] / one["seconds"] for one in blocks if one["waited_s"] is not None]
    return {
        "waited": max(waited) if len(waited) == len(blocks) else None,
        "stolen": max(one["stolen_s"] / one["seconds"] for one in blocks),
        # a short block may lose its processor once
        "preempted": max((one["preempted"] - 1) / (one["seconds"] * threads) for one in blocks),
        "window": window,
    }


def disturbance(pair: Facts, foreign_cores: list[float | None]) -> str | None:
    """`stolen`, `waited` or `preempted`: why the pair does not count; None where it does.

    `foreign_cores` are those of the windows, of which that of the pair counts and its neighbours: a
    burst that begins at its end shows in the next one, and after a burst the threads of an engine
    may share a processor for a while. None, or a window that is not there yet, is unknown: then, if
    it is that of the pair, one whose threads waited does not count.
    """
    if pair["stolen"] > WAITED:
        return "stolen"
    place = pair["window"]
    if place < len(foreign_cores) and foreign_cores[place] is not None:
        near = foreign_cores[max(0, place - 1) : place + 2]
        if max(cores or 0.0 for cores in near) <= FOREIGN:
            return None
    if pair["waited"] is not None:
        return "waited" if pair["waited"] > WAITED else None
    return "preempted" if pair["preempted"] > PREEMPTED else None


def undisturbed(shape: Facts) -> list[int]:
    """Indices of the pairs of a recorded shape that count."""
    windows = shape["foreign_cores"]
    return [
        index for index, pair in enumerate(shape["pairs"]) if disturbance(pair, windows) is None
    ]


def fewest_pairs(pairs: int, plan: Facts) -> int:
    """How many undisturbed pairs a number takes, of so many that were measured.

    More than half of `plan["pairs"]`: a pair that was disturbed near the time limit, or in a fixed
    number of calls, is not measured again.
    """
    return min(pairs, max(2, min(plan["pairs"], pairs) // 2 + 1))


def window_seconds(processors: int) -> float:
    """How long foreign cores of so many processors are counted: 0.14 s of two, 0.41 of sixteen.

    Short, so that the gaps between the bursts of another program count. Idle time of each
    processor is counted in whole ticks (10 ms), so the difference of two counts has an error that
    is triangular within one tick, standard deviation tick / sqrt(6).
    """
    return math.sqrt(processors / 6) / TICKS / BLUR


class Windows:
    """How many cores of these processors other programs used, over windows of `seconds`.

    `own_seconds` gives the CPU seconds that the timed engines and this process have used so far.
    What is neither idle nor theirs is foreign: other programs, the kernel, a hypervisor.
    """

    def __init__(self, processors: list[int], own_seconds: Callable[[], float]) -> None:
        self.processors = processors
        self.own_seconds = own_seconds
        self.seconds = window_seconds(len(processors))
        self.cores: list[float | None] = []
        self.open()

    @property
    def index(self) -> int:
        """The place of the open window in `cores`."""
        return len(self.cores)

    def open(self) -> None:
        """Begin a window now; what went on since the last one ended is in none."""
        self.began = self.counted()

    def counted(self) -> tuple[float, float, float]:
        """The clock, idle seconds of the processors, and own CPU seconds."""
        return time.monotonic(), idle_seconds(self.processors), self.own_seconds()

    def close_when_due(self, *, last: bool = False) -> float | None:
        """Close the window once it is long enough, and open the next; gives its foreign cores.

        The `last` one is closed at half that length too; a shorter one is kept as unknown.
        """
        if time.monotonic() - self.began[0] < (self.seconds / 2 if last else self.seconds):
            if last:
                self.cores.append(None)
            return None
        return self.close()

    def close(self) -> float:
        """Close the window now, and open the next; gives its foreign cores."""
        seconds, idle, own = (
            now - then for now, then in zip(self.counted(), self.began, strict=True)
        )
        foreign = (len(self.processors) * seconds - idle - own) / seconds
        self.cores.append(max(0.0, foreign))
        self.open()
        return self.cores[-1]
