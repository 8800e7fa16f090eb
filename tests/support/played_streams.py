"""Programs on streams of a device that a test plays: a call ends a known time after it began."""

import time
from typing import Any

CALL = 0.005


class Program:
    """Its calls run beside those of other programs, one after the other on its own stream."""

    def __init__(self) -> None:
        self.ends = 0.0
        self.queued = self.most = 0
        self.released = False

    def enqueue(self, inputs: Any) -> None:
        self.queued += 1
        self.most = max(self.most, self.queued)
        self.ends = time.perf_counter() + CALL

    def wait(self) -> float:
        self.queued = 0
        time.sleep(max(0.0, self.ends - time.perf_counter()))
        return self.ends

    def release(self) -> None:
        self.released = True


class Device:
    """An engine whose streams overlap completely; `most` is the largest number that fits."""

    def __init__(self, most: int = 99) -> None:
        self.most = most

    def on_streams(self, inputs: Any, count: int) -> tuple[list[Program], Any]:
        if count > self.most:
            raise MemoryError
        return [Program() for _ in range(count)], inputs
