"""Input arrays of an engine, text or image, and their batches."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tightrope.errors import TightropeError
from tightrope.signature import BATCH, SEQUENCE, Signature

Arrays = dict[str, np.ndarray]
# sequence length of an example for tracing or profiling
TOKENS = 8
PIXELS = "pixel_values"
# pixels that need about as much memory as a token of a text
PIXELS_PER_TOKEN = 64


def example_of(input_signature: Signature, batch: int, tokens: int = TOKENS) -> Arrays:
    """Return inputs of ones to trace, compile or profile; `tokens` sets a free sequence axis."""
    sizes = {BATCH: batch, SEQUENCE: tokens}
    shapes = input_signature.request(*(sizes[axis] for axis in input_signature.free))
    return {
        tensor.name: np.ones(shapes[tensor.name], tensor.dtype) for tensor in input_signature.inputs
    }


def stack(rows: Sequence[Arrays], *, sequence: int | None = None) -> Arrays:
    """Stack one batch: images [batch, 3, height, width], or texts, int64 [batch, sequence].

    Texts are padded with zeros (masked) to the longest row. With `sequence` the batch has exactly
    that many tokens; a longer row is an error.
    """
    rows = list(rows)
    if PIXELS in rows[0]:
        return {PIXELS: np.stack([row[PIXELS] for row in rows])}
    longest = max(len(row["input_ids"]) for row in rows)
    if sequence is not None and longest > sequence:
        raise TightropeError(f"an example has {longest} tokens, the batch was to have {sequence}")
    width = sequence or longest
    return {
        name: np.stack([np.pad(row[name], (0, width - len(row[name]))) for row in rows])
        for name in rows[0]
    }


def length(row: Arrays) -> int:
    """Return the tokens of an encoded text; for an image, the tokens of equal memory cost."""
    if PIXELS in row:
        return max(1, row[PIXELS][0].size // PIXELS_PER_TOKEN)
    return len(row["input_ids"])


def batches_of_equal_length(rows: Sequence[Arrays], *, tokens: int) -> Iterator[Arrays]:
    """Yield batches of equal length without padding, of at most `tokens` tokens.

    A single row may exceed the limit. Images, all of the same size, are decoded batch by batch.
    """
    by_length: Mapping[int, Sequence[Arrays]]
    if len(rows) and PIXELS in rows[0]:
        by_length = {length(rows[0]): rows}
    else:
        texts: dict[int, list[Arrays]] = {}
        for row in rows:
            texts.setdefault(length(row), []).append(row)
        by_length = texts
    for tokens_per_row, group in sorted(by_length.items()):
        size = max(1, tokens // tokens_per_row)
        for start in range(0, len(group), size):
            yield stack(group[start : start + size])


def batches_by_length(rows: Sequence[Arrays], size: int) -> Iterator[tuple[list[int], Arrays]]:
    """Yield indices and batch of rows of similar length, longest first, padded to the longest."""
    order: Sequence[int] = range(len(rows))
    if len(rows) and PIXELS not in rows[0]:
        order = sorted(order, key=lambda index: (-length(rows[index]), index))
    for start in range(0, len(order), size):
        indices = list(order[start : start + size])
        yield indices, stack([rows[index] for index in indices])
