import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from manifests import CHECKPOINT
from splits import prepare_splits, split_of
from tightrope.artifacts.manifest import write_manifest
from tightrope.errors import ArtifactError, TightropeError
from tightrope.inputs.arrays import Arrays, batches_by_length, batches_of_equal_length, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.inputs.texts import filled_batch
from tiny_model import LONGEST, TinyModel


def row(*ids: int) -> Arrays:
    return {"input_ids": np.array(ids), "attention_mask": np.ones(len(ids), dtype=np.int64)}


def rows_of(*lengths: int) -> list[Arrays]:
    """Rows of those lengths in which no token is in two rows."""
    starts = np.cumsum([1, *lengths])
    return [row(*range(start, start + n)) for start, n in zip(starts, lengths, strict=False)]


def check_batch(batch: Arrays, shape: tuple[int, int]) -> None:
    assert set(batch) == {"input_ids", "attention_mask"}
    for array in batch.values():
        assert (array.shape, array.dtype) == (shape, np.int64)
        assert array.flags.c_contiguous


def real_tokens(batch: Arrays) -> list[list[int]]:
    return [
        ids[mask == 1].tolist()
        for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)
    ]


def test_texts_become_int64_rows_without_padding(tiny: TinyModel) -> None:
    examples = read_split(split_of(tiny.data, "evaluation"))
    rows = load_encoder(tiny.checkpoint, max_sequence=LONGEST)(examples)
    assert len(rows) == len(examples) == 80
    for one, example in zip(rows, examples, strict=True):
        assert one["input_ids"].dtype == one["attention_mask"].dtype == np.int64
        assert one["input_ids"].shape == one["attention_mask"].shape
        assert one["attention_mask"].all()
        assert len(one["input_ids"]) >= min(len(example["text"].split()), LONGEST)


def test_texts_are_cut_at_the_longest_sequence_and_keep_their_end_token(tiny: TinyModel) -> None:
    short = load_encoder(tiny.checkpoint, max_sequence=8)
    whole = load_encoder(tiny.checkpoint, max_sequence=LONGEST)
    text = [{"text": "a fine film " * 30}, {"text": "a fine film"}]
    assert [len(one["input_ids"]) for one in short(text)] == [8, 5]
    assert [len(one["input_ids"]) for one in whole(text)] == [64, 5]
    assert short(text)[0]["input_ids"][-1] == whole(text)[0]["input_ids"][-1]


def test_a_text_is_encoded_alike_alone_and_among_others(tiny: TinyModel) -> None:
    encode = load_encoder(tiny.checkpoint, max_sequence=LONGEST)
    examples = read_split(split_of(tiny.data, "evaluation"))[:9]
    for one, together in zip(examples, encode(examples), strict=True):
        np.testing.assert_array_equal(encode([one])[0]["input_ids"], together["input_ids"])


def test_random_inputs_are_the_same_for_the_same_seed(tmp_path: Path, tiny: TinyModel) -> None:
    sizes = {"train": None, "evaluation": 40}
    prepare_splits(
        tmp_path / "data.json", source="random", columns={}, splits=sizes, pool=5, seed=3
    )
    examples = read_split(split_of(tmp_path / "data.json", "evaluation"))
    first = load_encoder(tiny.checkpoint, max_sequence=16)(examples)
    again = load_encoder(tiny.checkpoint, max_sequence=16)(examples[::-1])[::-1]
    vocabulary = json.loads(tiny.checkpoint.read_text())["vocabulary"]
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one["input_ids"], other["input_ids"])
        assert one["input_ids"].dtype == np.int64
        assert 0 <= one["input_ids"].min() <= one["input_ids"].max() < vocabulary
    lengths = {len(one["input_ids"]) for one in first}
    assert min(lengths) >= 1
    assert max(lengths) == 16
    assert len({one["input_ids"].tobytes() for one in first}) > 30


def test_texts_without_a_tokenizer_are_an_error_that_names_it(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.json"
    write_manifest(checkpoint, **CHECKPOINT, vocabulary=10)
    encode = load_encoder(checkpoint, max_sequence=8)
    with pytest.raises(ArtifactError, match=r"tokenizer\.json: missing"):
        encode([{"text": "a"}])
    assert len(encode([{"random": 1}])) == 1


def test_a_part_that_was_cut_off_is_named(tiny: TinyModel, tmp_path: Path) -> None:
    shutil.copytree(tiny.data.parent, tmp_path / "data")
    file = tmp_path / "data/pool.jsonl"
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(
        ArtifactError, match=r"/data/pool\.jsonl: \d+ bytes, .*; delete \S+/data and"
    ):
        read_split(split_of(tmp_path / "data/data.json", "evaluation"))


def test_a_stack_is_padded_with_masked_zeros_to_its_longest_row() -> None:
    rows = rows_of(3, 5, 1)
    batch = stack(rows)
    check_batch(batch, (3, 5))
    assert real_tokens(batch) == [one["input_ids"].tolist() for one in rows]
    assert not batch["input_ids"][batch["attention_mask"] == 0].any()
    assert batch["attention_mask"].tolist()[0] == [1, 1, 1, 0, 0]


def test_a_stack_has_exactly_the_length_that_is_asked_for() -> None:
    check_batch(stack(rows_of(3, 5), sequence=9), (2, 9))
    check_batch(stack(rows_of(3, 5), sequence=5), (2, 5))
    with pytest.raises(TightropeError, match="an example has 5 tokens, the batch was to have 4"):
        stack(rows_of(3, 5), sequence=4)


@pytest.mark.parametrize("tokens", [1, 8, 12, 100])
def test_batches_of_equal_length_have_no_padding_and_lose_nothing(tokens: int) -> None:
    rows = rows_of(4, 2, 4, 7, 2, 4, 4, 1, 4)
    batches = list(batches_of_equal_length(rows, tokens=tokens))
    assert max(len(batch["input_ids"]) for batch in batches) == {1: 1, 8: 2, 12: 3, 100: 5}[tokens]
    for batch in batches:
        check_batch(batch, batch["input_ids"].shape)
        assert batch["attention_mask"].all()
        assert batch["input_ids"].size <= tokens or len(batch["input_ids"]) == 1
    found = [tokens for batch in batches for tokens in real_tokens(batch)]
    assert sorted(found) == sorted(one["input_ids"].tolist() for one in rows)


@pytest.mark.parametrize("size", [1, 2, 4, 32])
def test_batches_by_length_say_which_rows_they_hold(size: int) -> None:
    rows = rows_of(4, 2, 4, 7, 2, 4, 4, 1, 4)
    seen = []
    lengths = []
    for indices, batch in batches_by_length(rows, size):
        check_batch(batch, (len(indices), max(len(rows[i]["input_ids"]) for i in indices)))
        assert real_tokens(batch) == [rows[index]["input_ids"].tolist() for index in indices]
        seen += indices
        lengths += [len(rows[index]["input_ids"]) for index in indices]
    assert sorted(seen) == list(range(len(rows)))
    assert lengths == sorted(lengths, reverse=True)


@pytest.mark.parametrize(("batch", "sequence"), [(1, 1), (1, 64), (3, 17), (16, 128)])
def test_a_filled_batch_has_the_exact_shape_and_only_real_tokens(batch: int, sequence: int) -> None:
    rows = rows_of(3, 5, 1, 30)
    filled = filled_batch(rows, batch=batch, sequence=sequence)
    check_batch(filled, (batch, sequence))
    assert filled["attention_mask"].all()
    tokens = np.concatenate([one["input_ids"] for one in rows])
    flat = filled["input_ids"].ravel()
    np.testing.assert_array_equal(flat, tokens[np.arange(flat.size) % len(tokens)])


@pytest.mark.parametrize(("batch", "sequence", "tokens"), [(1, 8, 2), (3, 17, 16), (16, 128, 64)])
def test_a_padded_batch_has_that_many_real_tokens_in_each_text_and_zeros_behind_them(
    batch: int, sequence: int, tokens: int
) -> None:
    rows = rows_of(3, 5, 1, 30)
    padded = filled_batch(rows, batch=batch, sequence=sequence, tokens=tokens)
    check_batch(padded, (batch, sequence))
    assert padded["attention_mask"].sum(axis=1).tolist() == [tokens] * batch
    full = filled_batch(rows, batch=batch, sequence=tokens)
    for name, array in full.items():
        np.testing.assert_array_equal(padded[name][:, :tokens], array)
        assert not padded[name][:, tokens:].any()


def test_a_batch_of_as_many_tokens_as_the_sequence_is_the_full_one() -> None:
    sizes = {"batch": 4, "sequence": 16}
    full, same = (filled_batch(rows_of(3, 5, 9), **sizes, **more) for more in ({}, {"tokens": 16}))
    for name, array in full.items():
        np.testing.assert_array_equal(array, same[name])


def test_an_empty_split_gives_no_batches() -> None:
    assert list(batches_of_equal_length([], tokens=4)) == []
    assert list(batches_by_length([], 4)) == []
