"""A program for each shape of request, made when the shape first comes."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from tightrope.inputs.arrays import Arrays
from tightrope.runtimes.buckets import Bucket, Buckets
from tightrope.runtimes.padding import padded
from tightrope.signature import sizes_of

# each keeps buffers, and perhaps a graph, in the memory of the GPU
MOST_SHAPES = 64


class ByShape:
    """`run(inputs) -> float32 logits [batch, classes]`, each shape by a program of its own.

    `make(inputs)` gives the program for inputs as large as these: called with such, it gives their
    logits, and `device_seconds(inputs, calls)` the time of so many calls without transfers. With
    `buckets` a request is padded up to the nearest, else every shape that comes is one.
    """

    def __init__(self, make: Callable[[Arrays], Any], buckets: Buckets | None) -> None:
        self.make = make
        self.buckets = buckets
        self.programs: OrderedDict[Bucket, Any] = OrderedDict()

    def __call__(self, inputs: Arrays) -> np.ndarray:
        """Logits of `inputs`; ValueError beyond the buckets."""
        rows = len(next(iter(inputs.values())))
        program, whole = self.placed(inputs)
        return program(whole)[:rows]

    def device_seconds(self, inputs: Arrays, calls: int) -> list[float]:
        """Seconds of each of `calls` calls on inputs that are on the GPU, logits left there."""
        program, whole = self.placed(inputs)
        return program.device_seconds(whole, calls)

    def placed(self, inputs: Arrays) -> tuple[Any, Arrays]:
        """The program for `inputs`, and these as large as it takes them."""
        shape = sizes_of(inputs)
        if self.buckets is not None:
            shape = self.buckets.nearest(*shape)
        whole = padded(inputs, shape)
        if shape not in self.programs:
            self.programs[shape] = self.make(whole)
            if len(self.programs) > MOST_SHAPES:
                self.programs.popitem(last=False)
        self.programs.move_to_end(shape)
        return self.programs[shape], whole
