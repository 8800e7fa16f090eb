"""Encode and truncate texts as token ids, and fill batches for timing."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO, TypedDict

import numpy as np
from tokenizers import Tokenizer

from tightrope.artifacts.files import read_json
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.errors import ArtifactError, TightropeError, in_foreign_files

# share of unknown tokens, above which a tokenizer is another model's, and which is told
MOST_UNKNOWN, TOLD_UNKNOWN = 0.2, 0.02
Arrays = dict[str, np.ndarray]
Example = dict[str, Any]


class Truncation(TypedDict):
    """How many of so many texts were cut at `max_sequence` tokens."""

    texts: int
    truncated: int
    max_sequence: int


class EncodedTexts(list[Arrays]):
    """Encoded texts, and how many of them were cut."""

    truncation: Truncation


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

    Texts are cut at `max_sequence` tokens; the seed of an example `random` becomes uniform token
    ids. Raises TightropeError if the model takes fewer tokens.
    """
    source, token_limit = manifest["source"], manifest["max_sequence"]
    require_sequence(source, token_limit, max_sequence, key="max_sequence")
    vocabulary = manifest["vocabulary"]
    file = checkpoint.parent / "tokenizer.json"
    tokenizer = load_tokenizer(file, max_sequence) if file.is_file() else None

    def encode(examples: Sequence[Example]) -> EncodedTexts:
        texts = [example["text"] for example in examples if "text" in example]
        encoded: list[Any] = []
        if texts:
            if tokenizer is None:
                raise ArtifactError(f"{file}: missing, the texts of the data cannot be encoded")
            encoded = tokenizer.encode_batch(texts)
            require_known(f"{source}: {file.name}", encoded, vocabulary)
        following, rows = iter(encoded), EncodedTexts()
        for example in examples:
            if "text" in example:
                ids = next(following).ids
            else:
                generator = np.random.default_rng(example["random"])
                size = int(generator.integers(1, max_sequence + 1))
                ids = generator.integers(0, vocabulary, size=size)
            rows.append(text_arrays(ids))
        cut = truncated(encoded)
        rows.truncation = Truncation(texts=len(rows), truncated=cut, max_sequence=max_sequence)
        return rows

    return encode


def load_tokenizer(file: Path, longest: int) -> Tokenizer:
    """Return the tokenizer in `file`, which cuts texts at `longest` tokens and does not pad."""
    with in_foreign_files(f"{file}: cannot be read", "save the tokenizer again"):
        tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.enable_truncation(longest, direction=cut_side(file.parent))
    return tokenizer


def cut_side(folder: Path) -> str:
    """Return where transformers cuts long texts, `right` or `left`, as the files in `folder` say.

    tokenizer_config.json has precedence over tokenizer.json.
    """
    files = (folder / f"tokenizer{name}.json" for name in ("_config", ""))
    settings, own = (read_json(one, dict[str, Any]) if one.is_file() else {} for one in files)
    side = settings.get("truncation_side") or (own.get("truncation") or {}).get("direction")
    return str(side or "right").lower()


def check_tokenizer(
    source: str, folder: Path, texts: Sequence[str], vocabulary: int, terminal: TextIO
) -> None:
    """Encode texts with the tokenizer in `folder`, if any.

    Tells the share of tokens that it does not know. Raises TightropeError where that is more than
    MOST_UNKNOWN, and for an id that is no row of an embedding table of `vocabulary` rows.
    """
    file = folder / "tokenizer.json"
    if not texts:
        return
    if not file.is_file():
        raise TightropeError(f"{source}: has no {file.name}; write it with save_pretrained")
    tokenizer = Tokenizer.from_file(str(file))
    encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
    require_known(f"{source}: {file.name}", [*encoded, tokenizer.encode("")], vocabulary)
    model = read_json(file, dict[str, Any])["model"]
    unknown, ids = model.get("unk_id"), [number for one in encoded for number in one.ids]
    if unknown is None and model.get("unk_token") is not None:
        unknown = tokenizer.token_to_id(model["unk_token"])
    share = ids.count(unknown) / max(len(ids), 1)
    words = f"{source}: {file.name} does not know {share:.0%} of the tokens of the texts"
    if share > MOST_UNKNOWN:
        raise TightropeError(f"{words}; take this model's, and texts of its language")
    if share > TOLD_UNKNOWN:
        print(words, file=terminal)


def require_sequence(source: str, token_limit: int | None, tokens: int, *, key: str) -> None:
    """Raise TightropeError if the model from `source` takes fewer than `tokens`."""
    if token_limit is not None and tokens > token_limit:
        raise TightropeError(f"{source}: takes {token_limit} tokens, {key} is {tokens}; lower it")


def require_known(tokenizer: str, encoded: Sequence[Any], vocabulary: int) -> None:
    """Raise TightropeError for an id that is no row of an embedding table of `vocabulary` rows."""
    for one in encoded:
        if one.ids and max(one.ids) >= vocabulary:
            number = max(one.ids)
            raise TightropeError(
                f"{tokenizer} gives {one.tokens[one.ids.index(number)]!r} the id {number}, the "
                f"embedding table of the model has {vocabulary} rows; take the tokenizer of this "
                "model, or resize its embeddings"
            )


def text_arrays(ids: Any) -> Arrays:
    """Return `input_ids` and an `attention_mask` of ones, int64 [sequence]."""
    input_ids = np.asarray(ids, dtype=np.int64)
    return {"input_ids": input_ids, "attention_mask": np.ones_like(input_ids)}


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
