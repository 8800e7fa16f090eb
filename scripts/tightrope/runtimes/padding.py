"""Pad a request to the shape of a static program."""

import numpy as np

from tightrope.inputs.arrays import Arrays
from tightrope.runtimes.buckets import Bucket


def padded(inputs: Arrays, bucket: Bucket) -> Arrays:
    """Return `inputs` padded to the bucket: [batch, sequence] of texts, [batch] of images.

    Added tokens are zeros, and so is their mask. Added rows repeat the last row; drop them from the
    outputs.
    """
    return {name: enlarged(array, bucket) for name, array in inputs.items()}


def enlarged(array: np.ndarray, bucket: Bucket) -> np.ndarray:
    """Pad one input to the bucket along its first axes."""
    if array.shape[: len(bucket)] == bucket:
        return array
    added = [(0, size - own) for size, own in zip(bucket, array.shape, strict=False)]
    kept = [(0, 0)] * (array.ndim - len(bucket))
    filled = np.pad(array, [(0, 0), *added[1:], *kept])
    return np.pad(filled, [added[0], *[(0, 0)] * (array.ndim - 1)], mode="edge")
