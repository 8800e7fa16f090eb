import json
from pathlib import Path

import numpy as np
import pytest
from manifests import CHECKPOINT
from splits import prepare_splits, split_of
from tightrope.artifacts.manifest import read_manifest, write_manifest
from tightrope.artifacts.manifest_types import DataManifest
from tightrope.errors import ArtifactError, TightropeError
from tightrope.inputs.arrays import Arrays, batches_by_length, batches_of_equal_length, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.inputs.texts import filled_batch, truncation_of
from tiny_model import LONGEST, TinyModel


def rows_of(*lengths: int) -> list[Arrays]:
    """Rows of those lengths in which no token is in two rows."""
    starts = np.cumsum([1, *lengths])
    tokens = [np.arange(start, start + n) for start, n in zip(starts, lengths, strict=False)]
    return [{"input_ids": ids, "attention_mask": np.ones_like(ids)} for ids in tokens]


def check_batch(batch: Arrays, shape: tuple[int, int]) -> None:
    assert set(batch) == {"input_ids", "attention_mask"}
    for array in batch.values():
        assert (array.shape, array.dtype) == (shape, np.int64)
        assert array.flags.c_contiguous


def real_tokens(batch: Arrays) -> list[list[int]]:
    pairs = zip(batch["input_ids"], batch["attention_mask"], strict=True)
    return [ids[mask == 1].tolist() for ids, mask in pairs]


@pytest.mark.parametrize("max_sequence", [8, LONGEST])
def test_texts_become_rows_and_cut_ones_are_counted(tiny: TinyModel, max_sequence: int) -> None:
    """They keep their end token; each is encoded alike alone and among others."""
    examples = read_split(tiny.split("evaluation"))
    encode = load_encoder(tiny.checkpoint, max_sequence=max_sequence)
    rows, whole = encode(examples), load_encoder(tiny.checkpoint, max_sequence=LONGEST)(examples)
    assert len(rows) == len(examples) == 80
    for one, other, example in zip(rows, whole, examples, strict=True):
        assert one["input_ids"].dtype == one["attention_mask"].dtype == np.int64
        assert one["input_ids"].shape == one["attention_mask"].shape
        assert one["attention_mask"].all()
        assert len(one["input_ids"]) == min(len(other["input_ids"]), max_sequence)
        assert len(one["input_ids"]) >= min(len(example["text"].split()), max_sequence)
        assert one["input_ids"][-1] == other["input_ids"][-1]
        np.testing.assert_array_equal(encode([example])[0]["input_ids"], one["input_ids"])
    longer = sum(len(row["input_ids"]) > max_sequence for row in whole)
    assert (longer > 0) is (max_sequence < LONGEST)
    counts = {"texts": 80, "truncated": longer, "max_sequence": max_sequence}
    assert truncation_of(rows) == counts


def test_random_data_are_seeds_of_inputs_without_labels(tmp_path: Path, tiny: TinyModel) -> None:
    sizes, data = {"train": None, "evaluation": 40}, tmp_path / "data.json"
    prepare_splits(data, source="random", columns={}, splits=sizes, pool=5, seed=3)
    assert read_manifest(data, DataManifest)["labels"] is None
    assert read_split(split_of(data, "train")) == []
    examples = read_split(split_of(data, "evaluation"))
    seeds = [one["random"] for one in (*examples, *read_split(split_of(data, "calibration")))]
    assert len(set(seeds)) == 45
    encode = load_encoder(tiny.checkpoint, max_sequence=16)
    first = [one["input_ids"] for one in encode(examples)]
    again = [one["input_ids"] for one in encode(examples[::-1])][::-1]
    vocabulary = json.loads(tiny.checkpoint.read_text())["vocabulary"]
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == np.int64
        assert 0 <= one.min() <= one.max() < vocabulary
    lengths = set(map(len, first))
    assert (min(lengths) >= 1, max(lengths)) == (True, 16)
    assert len({one.tobytes() for one in first}) > 30
    assert truncation_of(encode(examples)) == {"texts": 40, "truncated": 0, "max_sequence": 16}


def test_texts_without_a_tokenizer_are_an_error_that_names_it(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.json"
    write_manifest(checkpoint, **CHECKPOINT, vocabulary=10)
    encode = load_encoder(checkpoint, max_sequence=8)
    with pytest.raises(ArtifactError, match=r"tokenizer\.json: missing"):
        encode([{"text": "a"}])
    assert len(encode([{"random": 1}])) == 1


def test_a_stack_is_padded_with_masked_zeros_to_its_longest_row_or_the_length_asked_for() -> None:
    rows = rows_of(3, 5, 1)
    for sequence in (None, 5, 9):
        batch = stack(rows, sequence=sequence)
        check_batch(batch, (3, sequence or 5))
        assert real_tokens(batch) == [one["input_ids"].tolist() for one in rows]
        assert not batch["input_ids"][batch["attention_mask"] == 0].any()
    assert batch["attention_mask"].tolist()[0] == [1] * 3 + [0] * 6
    with pytest.raises(TightropeError, match="an example has 5 tokens, the batch was to have 4"):
        stack(rows, sequence=4)


@pytest.mark.parametrize(("tokens", "most"), [(1, 1), (8, 2)])
def test_batches_of_equal_length_have_no_padding_and_lose_nothing(tokens: int, most: int) -> None:
    rows = rows_of(4, 2, 4, 7, 2, 4, 4, 1, 4)
    batches = list(batches_of_equal_length(rows, tokens=tokens))
    assert max(len(batch["input_ids"]) for batch in batches) == most
    for batch in batches:
        check_batch(batch, batch["input_ids"].shape)
        assert batch["attention_mask"].all()
    found = [ids for batch in batches for ids in real_tokens(batch)]
    assert sorted(found) == sorted(one["input_ids"].tolist() for one in rows)
    assert list(batches_of_equal_length([], tokens=4)) == []


@pytest.mark.parametrize("size", [4, 32])
def test_batches_by_length_say_which_rows_they_hold_the_longest_first(size: int) -> None:
    rows = rows_of(4, 2, 4, 7, 2, 4, 4, 1, 4)
    seen = []
    for indices, batch in batches_by_length(rows, size):
        check_batch(batch, (len(indices), max(len(rows[i]["input_ids"]) for i in indices)))
        assert real_tokens(batch) == [rows[index]["input_ids"].tolist() for index in indices]
        seen += indices
    assert seen == [3, 0, 2, 5, 6, 8, 1, 4, 7]
    assert list(batches_by_length([], size)) == []


@pytest.mark.parametrize(("batch", "sequence", "tokens"), [(16, 128, None), (3, 17, 16)])
def test_a_filled_batch_has_the_exact_shape(batch: int, sequence: int, tokens: int | None) -> None:
    rows = rows_of(3, 5, 1, 30)
    filled = filled_batch(rows, batch=batch, sequence=sequence, tokens=tokens)
    check_batch(filled, (batch, sequence))
    real = tokens or sequence
    assert filled["attention_mask"][:, :real].all()
    known = np.concatenate([one["input_ids"] for one in rows])
    flat = filled["input_ids"][:, :real].ravel()
    np.testing.assert_array_equal(flat, known[np.arange(flat.size) % len(known)])
    for array in filled.values():
        assert not array[:, real:].any()
