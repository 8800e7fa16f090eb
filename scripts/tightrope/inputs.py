"""From examples to the arrays that an engine takes; the only place that knows a task's inputs."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from tightrope.errors import ArtifactError, TightropeError
from tightrope.manifest import read_manifest
from tightrope.signature import BATCH, SEQUENCE, Signature

Arrays = dict[str, np.ndarray]
Example = dict[str, Any]
# tokens of an example that is only traced or profiled
TOKENS = 8
# examples whose tokens fill the batches that are timed
TIMING_EXAMPLES = 256
Encoder = Callable[[list[Example]], list[Arrays]]


def example_of(taken: Signature, batch: int, tokens: int = TOKENS) -> Arrays:
    """Inputs of ones to trace, compile or profile with; `tokens` where a sequence is free."""
    sizes = {BATCH: batch, SEQUENCE: tokens}
    shapes = taken.request(*(sizes[axis] for axis in taken.free))
    return {one.name: np.ones(shapes[one.name], one.dtype) for one in taken.inputs}


def read_split(data: Path | str, split: str) -> list[Example]:
    """The examples of `split` (train, evaluation or calibration) beside manifest `data`."""
    manifest = read_manifest(data)
    if split not in manifest["splits"]:
        raise ArtifactError(f"{data}: has no {split} split, only {', '.join(manifest['splits'])}")
    lines = (Path(data).parent / manifest["splits"][split]["file"]).read_text().splitlines()
    return [json.loads(line) for line in lines]


def load_encoder(checkpoint: Path | str, *, max_sequence: int) -> Encoder:
    """A function from examples to one dict of arrays each, without padding.

    Text: `input_ids` and `attention_mask`, int64 [sequence], cut at `max_sequence` tokens.
    An example of the data source `random` holds a seed and becomes uniform token ids.
    Raises TightropeError where the model takes fewer tokens than that.
    """
    manifest = read_manifest(checkpoint)
    if manifest["task"] != "text-classification":
        raise TightropeError(f"{checkpoint}: not yet: task {manifest['task']}")
    require_sequence(manifest, max_sequence, key="max_sequence")
    vocabulary = int(manifest["vocabulary"])
    file = Path(checkpoint).parent / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(file)) if file.is_file() else None
    if tokenizer is not None:
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_sequence)

    def encode(examples: list[Example]) -> list[Arrays]:
        texts = [example["text"] for example in examples if "text" in example]
        if texts and tokenizer is None:
            raise ArtifactError(f"{file}: missing, the texts of the data cannot be encoded")
        encoded = iter(tokenizer.encode_batch(texts)) if texts else iter(())
        return [
            text_arrays(next(encoded).ids)
            if "text" in example
            else text_arrays(random_ids(example["random"], max_sequence, vocabulary))
            for example in examples
        ]

    return encode


def require_sequence(manifest: dict[str, Any], tokens: int, *, key: str) -> None:
    """Raise TightropeError where the model of a checkpoint's manifest takes fewer `tokens`."""
    longest = manifest.get("max_sequence")
    if longest is not None and tokens > longest:
        raise TightropeError(
            f"{manifest['source']}: takes {longest} tokens, {key} is {tokens}; lower it"
        )


def text_arrays(ids: Any) -> Arrays:
    """`input_ids` and a full `attention_mask`, int64 [sequence]."""
    input_ids = np.asarray(ids, dtype=np.int64)
    return {"input_ids": input_ids, "attention_mask": np.ones_like(input_ids)}


def random_ids(seed: int, max_sequence: int, vocabulary: int) -> np.ndarray:
    """Uniform token ids, int64 [1 to max_sequence], the same for the same seed."""
    generator = np.random.default_rng(seed)
    length = int(generator.integers(1, max_sequence + 1))
    return generator.integers(0, vocabulary, size=length)


def stack(rows: list[Arrays], *, sequence: int | None = None) -> Arrays:
    """One batch, int64 [batch, sequence]: padded with zeros (masked) to the longest row.

    With `sequence` the batch has exactly that many tokens; a longer row is an error.
    """
    longest = max(len(row["input_ids"]) for row in rows)
    if sequence is not None and longest > sequence:
        raise TightropeError(f"an example has {longest} tokens, the batch was to have {sequence}")
    width = sequence or longest
    return {
        name: np.stack([np.pad(row[name], (0, width - len(row[name]))) for row in rows])
        for name in rows[0]
    }


def batches_of_equal_length(rows: list[Arrays], *, tokens: int) -> Iterator[Arrays]:
    """Batches of one length each, so that no padding is in them; of at most so many `tokens`.

    One row alone may have more.
    """
    by_length: dict[int, list[Arrays]] = {}
    for row in rows:
        by_length.setdefault(len(row["input_ids"]), []).append(row)
    for length in sorted(by_length):
        group, size = by_length[length], max(1, tokens // length)
        for start in range(0, len(group), size):
            yield stack(group[start : start + size])


def batches_by_length(rows: list[Arrays], size: int) -> Iterator[tuple[list[int], Arrays]]:
    """Indices and batch of neighbours in length, longest first, padded to the longest."""
    order = sorted(range(len(rows)), key=lambda index: (-len(rows[index]["input_ids"]), index))
    for start in range(0, len(order), size):
        indices = order[start : start + size]
        yield indices, stack([rows[index] for index in indices])


def timing_batches(
    checkpoint: Path | str, data: Path | str, shapes: list[dict[str, int]], *, max_sequence: int
) -> list[Arrays]:
    """A batch of real evaluation examples for each shape, without padding, see `filled_batch`.

    Raises TightropeError for a shape of more tokens than the model takes.
    """
    manifest = read_manifest(checkpoint)
    for shape in shapes:
        require_sequence(manifest, shape["sequence"], key="shapes: sequence")
    examples = read_split(data, "evaluation")[:TIMING_EXAMPLES]
    rows = load_encoder(checkpoint, max_sequence=max_sequence)(examples)
    return [filled_batch(rows, **shape) for shape in shapes]


def filled_batch(rows: list[Arrays], *, batch: int, sequence: int) -> Arrays:
    """A batch of exactly [batch, sequence] real tokens without padding, for timing.

    Rows are joined, one after the other, until the batch is full; where all rows together
    are too short they are used again from the first.
    """
    tokens = np.concatenate([row["input_ids"] for row in rows])
    ids = np.resize(tokens, batch * sequence).reshape(batch, sequence)
    return {"input_ids": np.ascontiguousarray(ids), "attention_mask": np.ones_like(ids)}
