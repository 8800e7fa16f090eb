"""A request as large as the static program that answers it."""

import numpy as np

from tightrope.inputs.arrays import Arrays
from tightrope.runtimes.buckets import Bucket


def padded(inputs: Arrays, bucket: Bucket) -> Arrays:
    """`inputs` as large as the bucket: [batch, sequence] of texts, [batch] of images.

    Added tokens are zeros, masked like them; added rows repeat the last one and are to be
    dropped from the outputs.
    """
    return {name: enlarged(array, bucket) for name, array in inputs.items()}


def enlarged(array: np.ndarray, bucket: Bucket) -> np.ndarray:
    """One input as large as the bucket along its first axes."""
    if array.shape[: len(bucket)] == bucket:
        return array
    added = [(0, size - own) for size, own in zip(bucket, array.shape, strict=False)]
    kept = [(0, 0)] * (array.ndim - len(bucket))
    filled = np.pad(array, [(0, 0), *added[1:], *kept])
    return np.pad(filled, [added[0], *[(0, 0)] * (array.ndim - 1)], mode="edge")
