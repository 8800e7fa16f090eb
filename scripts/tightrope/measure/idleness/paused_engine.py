"""An engine in a child process that is called once after a pause."""

import time

from tightrope.measure.timed_engine import TimedEngine
from tightrope.measure.timing import timed_calls


class PausedEngine(TimedEngine):
    """A timed engine that also answers `back_to_back` and `next_call`.

    It sleeps on its pipe during a pause, as a server that waits for a request.
    """

    ended_s = 0.0

    def back_to_back(self, index: int, seconds: float, calls: int, limit: float) -> list[float]:
        """Return the seconds per call of at least `calls` over at least `seconds`.

        After about `limit` seconds it ends anyway. The pause begins when it ends.
        """
        samples = timed_calls(
            self.run, self.inputs[index], seconds=seconds, calls=calls, limit_seconds=limit
        )
        self.ended_s = time.perf_counter()
        return samples

    def next_call(self, index: int) -> dict[str, float]:
        """Return `call_s`, the seconds of a single call, and `paused_s` since the last block."""
        paused = time.perf_counter() - self.ended_s
        (seconds,) = timed_calls(
            self.run, self.inputs[index], seconds=0.0, calls=1, limit_seconds=0.0
        )
        return {"paused_s": paused, "call_s": seconds}
