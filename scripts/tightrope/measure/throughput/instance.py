"""One of several instances of an engine, in a child process of its own."""

import time
from typing import Any

from tightrope.machine.foreign_load import counters, settle
from tightrope.measure.throughput.closed_loop import closed_loop
from tightrope.measure.timed_engine import TimedEngine


class Instance(TimedEngine):
    """A timed engine that also answers `pace` and `loop`."""

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
