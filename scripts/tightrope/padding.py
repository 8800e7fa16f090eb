"""A request as large as the static program that answers it."""

import numpy as np

from tightrope.inputs import Arrays
from tightrope.static_shapes import Bucket


def padded(inputs: Arrays, bucket: Bucket) -> Arrays:
    """`inputs`, int64 [batch, sequence], as large as the bucket.

    Added tokens are zeros, masked like them; added rows repeat the last one and are to be
    dropped from the outputs.
    """
    rows, columns = np.shape(next(iter(inputs.values())))
    if (rows, columns) == bucket:
        return inputs
    return {
        name: np.pad(
            np.pad(array, ((0, 0), (0, bucket.sequence - columns))),
            ((0, bucket.batch - rows), (0, 0)),
            mode="edge",
        )
        for name, array in inputs.items()
    }
