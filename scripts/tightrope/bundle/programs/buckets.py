"""Shape buckets: a request is padded up to the nearest."""

from itertools import product

import numpy as np


def sizes_of(buckets):
    """Return the sizes of each axis: batch and sequence of texts, batch of images."""
    return [sorted(buckets[axis]) for axis in ("batch", "sequence") if axis in buckets]


def shapes_of(buckets):
    """Return the shapes, each of a program."""
    return list(product(*sizes_of(buckets)))


def padded(inputs, buckets):
    """Return the nearest shape, and the inputs in it: zeros after the tokens, rows repeated."""
    request = next(iter(inputs.values())).shape
    pairs = list(zip(sizes_of(buckets), request, strict=False))
    shape = tuple(min(size for size in sizes if size >= asked) for sizes, asked in pairs)
    rows = np.minimum(np.arange(shape[0]), request[0] - 1)
    more = [(0, size - asked) for size, asked in zip(shape[1:], request[1:], strict=False)]

    def enlarged(array):
        widths = [(0, 0), *more] + [(0, 0)] * (array.ndim - len(shape))
        return np.ascontiguousarray(np.pad(array, widths)[rows])

    return shape, {name: enlarged(array) for name, array in inputs.items()}
