from typing import Any

import numpy as np
import pytest
from tightrope.inputs.arrays import Arrays
from tightrope.plan.shapes import buckets_of
from tightrope.runtimes.buckets import Bucket, Buckets, in_words
from tightrope.runtimes.padding import padded

TEXTS = {"task": "text-classification"}
SIZES = {"batch": [16, 1, 4], "sequence": [128, 32, 64]}


def inputs(batch: int, sequence: int) -> Arrays:
    """Tokens that are all different, rows of different lengths."""
    ids = np.arange(1, 1 + batch * sequence, dtype=np.int64).reshape(batch, sequence)
    lengths = sequence - np.arange(batch)[:, None] % sequence
    mask = (np.arange(sequence) < lengths).astype(np.int64)
    return {"input_ids": ids * mask, "attention_mask": mask}


def config(
    *shapes: tuple[int, int], longest: int = 128, batch: int | None = None, **changes: Any
) -> dict[str, Any]:
    """Shapes of (batch, sequence); with a `batch` traffic is measured as well."""
    return {
        "buckets": "auto",
        "shapes": [{"batch": size, "sequence": tokens} for size, tokens in shapes],
        "models": {
            "m": {**TEXTS, "max_sequence": longest},
            "other": {**TEXTS, "max_sequence": 4096},
        },
        "traffic": {"variants": ["cpu-openvino-fp32"] if batch else [], "batch": batch or 32},
        **changes,
    }


@pytest.mark.parametrize(
    ("batch", "sequence", "nearest"),
    [
        (1, 1, (1, 32)),
        (1, 32, (1, 32)),
        (1, 33, (1, 64)),
        (2, 32, (4, 32)),
        (4, 64, (4, 64)),
        (5, 65, (16, 128)),
        (16, 128, (16, 128)),
    ],
)
def test_a_request_goes_to_the_smallest_bucket_that_holds_it(
    batch: int, sequence: int, nearest: tuple[int, int]
) -> None:
    assert Buckets(SIZES).nearest(batch, sequence) == nearest


def test_no_bucket_that_holds_a_request_is_smaller_than_the_nearest() -> None:
    buckets = Buckets(SIZES)
    for batch in range(1, 17):
        for sequence in range(1, 129):
            holding = [one for one in buckets.all() if one[0] >= batch and one[1] >= sequence]
            assert buckets.nearest(batch, sequence) == min(holding)


def test_there_is_a_bucket_for_every_batch_with_every_sequence_the_smallest_first() -> None:
    found = Buckets({"batch": [4, 1], "sequence": [64, 32]}).all()
    assert found == [(1, 32), (1, 64), (4, 32), (4, 64)]
    assert list(map(in_words, found)) == ["1x32", "1x64", "4x32", "4x64"]


@pytest.mark.parametrize(("batch", "sequence"), [(17, 32), (1, 129), (17, 129)])
def test_a_request_beyond_the_buckets_is_an_error_that_names_the_range(
    batch: int, sequence: int
) -> None:
    with pytest.raises(ValueError, match=f"a request of {batch}x{sequence}: ") as caught:
        Buckets(SIZES).nearest(batch, sequence)
    assert "batches of 1 to 16 and sequences of 1 to 128" in str(caught.value)


@pytest.mark.parametrize("bucket", [(3, 8), (4, 8), (3, 32), (16, 32)])
def test_padding_keeps_the_request_in_the_corner_of_the_bucket(bucket: Bucket) -> None:
    given = inputs(3, 8)
    found = padded(given, bucket)
    assert list(found) == ["input_ids", "attention_mask"]
    for name, array in found.items():
        assert (array.shape, array.dtype) == (bucket, np.int64)
        np.testing.assert_array_equal(array[:3, :8], given[name])


def test_added_tokens_are_masked_zeros() -> None:
    found = padded(inputs(3, 8), (4, 32))
    for array in found.values():
        assert not array[:, 8:].any()
    assert found["attention_mask"][0].sum() == 8


def test_added_rows_repeat_the_last_one_so_that_no_row_is_masked_whole() -> None:
    given = inputs(3, 8)
    found = padded(given, (16, 8))
    for name, array in found.items():
        np.testing.assert_array_equal(array[3:], np.tile(given[name][-1], (13, 1)))
    assert found["attention_mask"].any(axis=1).all()


def test_the_request_itself_is_left_as_it_was() -> None:
    given = inputs(3, 8)
    found = padded(given, (4, 32))
    found["input_ids"][:] = 0
    np.testing.assert_array_equal(given["input_ids"], inputs(3, 8)["input_ids"])


def test_a_request_as_large_as_its_bucket_is_not_copied() -> None:
    given = inputs(4, 32)
    assert all(padded(given, (4, 32))[name] is array for name, array in given.items())


def test_auto_takes_the_batches_of_the_shapes_and_one() -> None:
    assert buckets_of(config((16, 64), (4, 128), (16, 128)), "m")["batch"] == [1, 4, 16]


@pytest.mark.parametrize(
    ("shapes", "longest", "sequences"),
    [
        ([(1, 64)], 128, [32, 64, 128]),
        ([(1, 64)], 100, [32, 64, 100]),
        ([(1, 200)], 128, [32, 64, 128, 200]),
        ([(1, 8)], 64, [32, 64]),
        ([(1, 33)], 2, [32, 33]),
        ([(1, 32)], 32, [32]),
        ([(1, 8)], 16, [16]),
    ],
)
def test_auto_takes_powers_of_two_to_the_longest_measured_sequence(
    shapes: list[tuple[int, int]], longest: int, sequences: list[int]
) -> None:
    assert buckets_of(config(*shapes, longest=longest), "m")["sequence"] == sequences


@pytest.mark.parametrize("batch", [None, 1, 8])
def test_auto_takes_no_batch_of_traffic(batch: int | None) -> None:
    """Each costs a program for every sequence; who wants them says so."""
    assert buckets_of(config((3, 64), batch=batch), "m")["batch"] == [1, 3]


def test_auto_holds_everything_that_is_measured_of_that_model() -> None:
    asked = config((16, 200), (2, 7), longest=100)
    buckets = Buckets(buckets_of(asked, "m"))
    for batch, sequence in [(16, 200), (2, 7), (1, 100), (1, 1)]:
        bucket = buckets.nearest(batch, sequence)
        assert bucket[0] >= batch
        assert bucket[1] >= sequence
    with pytest.raises(ValueError, match="sequences of 1 to 200"):
        buckets.nearest(1, 201)


def test_each_model_has_the_buckets_of_its_own_longest_text() -> None:
    asked = config((1, 64))
    assert buckets_of(asked, "m")["sequence"][-1] == 128
    assert buckets_of(asked, "other")["sequence"][-1] == 4096


@pytest.mark.parametrize("value", [None, {"batch": [5], "sequence": [7, 300]}])
def test_buckets_that_were_configured_are_taken_as_they_are(value: Any) -> None:
    asked = config((1, 64), batch=8, buckets=value)
    assert buckets_of(asked, "m") == buckets_of(asked, "other") == value
