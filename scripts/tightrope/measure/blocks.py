"""Blocks of calls of one engine, with their time limit, and time lost to other load."""

import time
from typing import Any

from tightrope.jobs.child import GRACE_SECONDS, Child
from tightrope.machine.interference import MAX_FOREIGN_CORES, Block, Windows
from tightrope.machine.quiet import QuietMachine
from tightrope.records.record import WarmUp

Plan = dict[str, Any]


class Stopwatch:
    """A worker with the time that its engine has used for one shape, and the limit of that time."""

    def __init__(self, worker: Child, max_seconds: float, blocks: list[list[float]]) -> None:
        self.worker = worker
        self.max_seconds = max_seconds
        self.seconds = sum(sum(block) for block in blocks)
        self.calls = sum(len(block) for block in blocks)

    def warm_up(self, index: int, plan: Plan) -> WarmUp:
        """Warm up, see `TimedEngine.warm_up`; a window is as long as a default block."""
        calls, window = plan["warmup_calls"], plan["min_seconds"] / plan["pairs"]
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


def block_sizes(plan: Plan) -> tuple[float, list[int]]:
    """Return the minimum seconds of a block, and the minimum calls per block as a repeating list.

    With a fixed number of calls there is no minimum time, and the list sums to that number.
    """
    if plan["calls"] is None:
        return plan["min_seconds"] / plan["pairs"], [1]
    pairs = min(plan["pairs"], plan["calls"])
    each, more = divmod(plan["calls"], pairs)
    return 0.0, [each + 1] * more + [each] * (pairs - more)


def lost_to_other_load(windows: Windows, machine: QuietMachine) -> float:
    """Close a due window and wait for a gap if it was disturbed; return seconds to give back."""
    began = windows.began[0]
    foreign = windows.close_when_due()
    if foreign is None or foreign <= MAX_FOREIGN_CORES:
        return 0.0
    given = machine.lose(time.monotonic() - began) + machine.wait_for_idle_gap()
    windows.open()
    return given
