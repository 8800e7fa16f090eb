"""Encode and truncate texts as token ids, and fill batches for timing."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from tokenizers import Tokenizer

from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.errors import ArtifactError, TightropeError, in_foreign_files

Arrays = dict[str, np.ndarray]
Example = dict[str, Any]


class Truncation(TypedDict):
    """How many of so many texts were cut at `max_sequence` tokens."""

    texts: int
    truncated: int
    max_sequence: int


class EncodedTexts(list[Arrays]):
    """Encoded texts, of which `truncated` were cut at `max_sequence` tokens."""

    def __init__(self, rows: Iterable[Arrays], *, truncated: int, max_sequence: int) -> None:
        super().__init__(rows)
        self.truncation: Truncation = {
            "texts": len(self),
            "truncated": truncated,
            "max_sequence": max_sequence,
        }


def truncation_of(rows: Sequence[Arrays]) -> Truncation | None:
    """Return how many of the texts from `text_encoder` were cut; None for images."""
    return rows.truncation if isinstance(rows, EncodedTexts) else None


def truncated(encoded: Iterable[Any]) -> int:
    """Return how many encodings of a tokenizer were cut."""
    return sum(bool(one.overflowing) for one in encoded)


def text_encoder(
    checkpoint: Path, manifest: CheckpointManifest, *, max_sequence: int
) -> Callable[[Sequence[Example]], EncodedTexts]:
    """Return a function from examples to `input_ids` and `attention_mask`, int64 [sequence] each.

    Texts are truncated to `max_sequence` tokens. An example of the data source `random` holds a
    seed and becomes uniform token ids. Raises TightropeError if the model takes fewer tokens than
    that.
    """
    source, token_limit = manifest["source"], manifest["max_sequence"]
    require_sequence(source, token_limit, max_sequence, key="max_sequence")
    vocabulary = manifest["vocabulary"]
    file = checkpoint.parent / "tokenizer.json"
    tokenizer = None
    if file.is_file():
        with in_foreign_files(f"{file}: cannot be read", "save the tokenizer again"):
            tokenizer = Tokenizer.from_file(str(file))
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_sequence)

    def encode(examples: Sequence[Example]) -> EncodedTexts:
        texts = [example["text"] for example in examples if "text" in example]
        encoded: list[Any] = []
        if texts:
            if tokenizer is None:
                raise ArtifactError(f"{file}: missing, the texts of the data cannot be encoded")
            encoded = tokenizer.encode_batch(texts)
        following = iter(encoded)
        rows = [
            text_arrays(next(following).ids)
            if "text" in example
            else text_arrays(random_ids(example["random"], max_sequence, vocabulary))
            for example in examples
        ]
        return EncodedTexts(rows, truncated=truncated(encoded), max_sequence=max_sequence)

    return encode


def require_sequence(source: str, token_limit: int | None, tokens: int, *, key: str) -> None:
    """Raise TightropeError if the model from `source` takes fewer than `tokens`."""
    if token_limit is not None and tokens > token_limit:
        raise TightropeError(f"{source}: takes {token_limit} tokens, {key} is {tokens}; lower it")


def text_arrays(ids: Any) -> Arrays:
    """Return `input_ids` and an `attention_mask` of ones, int64 [sequence]."""
    input_ids = np.asarray(ids, dtype=np.int64)
    return {"input_ids": input_ids, "attention_mask": np.ones_like(input_ids)}


def random_ids(seed: int, max_sequence: int, vocabulary: int) -> np.ndarray:
    """Return uniform token ids, int64 [1 to max_sequence], reproducible for a seed."""
    generator = np.random.default_rng(seed)
    length = int(generator.integers(1, max_sequence + 1))
    return generator.integers(0, vocabulary, size=length)


def filled_batch(
    rows: list[Arrays], *, batch: int, sequence: int, tokens: int | None = None
) -> Arrays:
    """Return a batch of exactly [batch, sequence] tokens, int64, for timing.

    Each text has `tokens` real ones, then padding as of `arrays.stack`: zeros, with mask 0. None is
    a full batch without padding. Rows are concatenated until the batch is full; if all rows
    together are too short, they are repeated.
    """
    real = tokens or sequence
    ids = np.resize(np.concatenate([row["input_ids"] for row in rows]), (batch, real))
    padding = ((0, 0), (0, sequence - real))
    return {"input_ids": np.pad(ids, padding), "attention_mask": np.pad(np.ones_like(ids), padding)}
