"""One program per request shape, created at the first request of the shape."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from tightrope.inputs.arrays import Arrays
from tightrope.runtimes.buckets import Bucket, Buckets
from tightrope.runtimes.padding import padded
from tightrope.signature import sizes_of

# each program keeps buffers, and perhaps a CUDA graph, in GPU memory
MOST_SHAPES = 64


class ByShape:
    """Callable `run(inputs) -> float32 logits [batch, classes]` with one program per shape.

    `make(inputs)` returns the program for the shape of `inputs`. Calling the program returns
    logits; its `device_seconds(inputs, calls)` returns the seconds of each call without transfers,
    its `release()` frees what it holds on the GPU.
    With `buckets` a request is padded to the nearest bucket, else every request shape has a
    program.
    """

    def __init__(self, make: Callable[[Arrays], Any], buckets: Buckets | None) -> None:
        self.make = make
        self.buckets = buckets
        self.programs: OrderedDict[Bucket, Any] = OrderedDict()

    def __call__(self, inputs: Arrays) -> np.ndarray:
        """Return logits of `inputs`; raise ValueError for a request beyond the buckets."""
        rows = len(next(iter(inputs.values())))
        program, whole = self.placed(inputs)
        return program(whole)[:rows]

    def device_seconds(self, inputs: Arrays, calls: int) -> list[float]:
        """Return the seconds of each of `calls` calls, with inputs and logits on the GPU."""
        program, whole = self.placed(inputs)
        return program.device_seconds(whole, calls)

    def placed(self, inputs: Arrays) -> tuple[Any, Arrays]:
        """Return the program for `inputs`, and the inputs padded to its shape."""
        shape = sizes_of(inputs)
        if self.buckets is not None:
            shape = self.buckets.nearest(*shape)
        whole = padded(inputs, shape)
        if shape not in self.programs:
            self.programs[shape] = self.make(whole)
            if len(self.programs) > MOST_SHAPES:
                self.programs.popitem(last=False)[1].release()
        self.programs.move_to_end(shape)
        return self.programs[shape], whole
