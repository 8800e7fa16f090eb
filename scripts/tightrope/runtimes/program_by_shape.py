"""One program per request shape, created at its first request, which may be padded to it."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from tightrope.inputs.arrays import Arrays
from tightrope.runtimes.shapes import Bucket, Buckets
from tightrope.signature import sizes_of

# from inputs to the program for their shape
Make = Callable[[Arrays], Any]
# each program keeps buffers, and perhaps a CUDA graph, in GPU memory
MOST_SHAPES = 64


def padded(inputs: Arrays, bucket: Bucket) -> Arrays:
    """Return `inputs` padded to the bucket: [batch, sequence] of texts, [batch] of images.

    Added tokens are zeros, and so is their mask. Added rows repeat the last row; drop them from the
    outputs.
    """
    if sizes_of(inputs) == bucket:
        return inputs
    whole = {}
    for name, array in inputs.items():
        added = [(0, size - own) for size, own in zip(bucket, array.shape, strict=False)]
        kept = [(0, 0)] * (array.ndim - len(bucket))
        filled = np.pad(array, [(0, 0), *added[1:], *kept])
        whole[name] = np.pad(filled, [added[0], *[(0, 0)] * (array.ndim - 1)], mode="edge")
    return whole


class ByShape:
    """Callable `run(inputs) -> float32 logits [batch, classes]` with one program per shape.

    `on_new_queue()` returns `make(inputs)`, which returns the program for the shape of `inputs`.
    Programs of one `make` run one after the other on one stream. Calling a program returns logits;
    its `device_seconds(inputs, calls)` returns the seconds of each call without transfers, its
    `release()` frees what it holds on the GPU.
    With `buckets` a request is padded to the nearest bucket, else every request shape has a
    program.
    """

    def __init__(self, on_new_queue: Callable[[], Make], buckets: Buckets | None) -> None:
        self.on_new_queue = on_new_queue
        self.make = on_new_queue()
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

    def on_streams(self, inputs: Arrays, count: int) -> tuple[list[Any], Arrays]:
        """Return `count` new programs for `inputs`, and the inputs padded to their shape.

        Each has its own stream and buffers, so that they may run at the same time. They belong to
        the caller, who releases them.
        """
        whole = self.whole(inputs)
        return [self.on_new_queue()(whole) for _ in range(count)], whole

    def whole(self, inputs: Arrays) -> Arrays:
        """Return the inputs padded to the nearest bucket, without buckets as they are."""
        shape = sizes_of(inputs)
        return padded(inputs, self.buckets.nearest(*shape) if self.buckets else shape)

    def placed(self, inputs: Arrays) -> tuple[Any, Arrays]:
        """Return the program for `inputs`, and the inputs padded to its shape."""
        whole = self.whole(inputs)
        shape = sizes_of(whole)
        if shape not in self.programs:
            self.programs[shape] = self.make(whole)
            if len(self.programs) > MOST_SHAPES:
                self.programs.popitem(last=False)[1].release()
        self.programs.move_to_end(shape)
        return self.programs[shape], whole
