import numpy as np
import pytest
from tightrope.inputs.arrays import Arrays
from tightrope.runtimes.buckets import Bucket, Buckets, in_words
from tightrope.runtimes.program_by_shape import padded

BUCKETS = Buckets({"batch": [16, 1, 4], "sequence": [128, 32, 64]})


def inputs(batch: int, sequence: int) -> Arrays:
    """Tokens that are all different, rows of different lengths."""
    ids = np.arange(1, 1 + batch * sequence, dtype=np.int64).reshape(batch, sequence)
    lengths = sequence - np.arange(batch)[:, None] % sequence
    mask = (np.arange(sequence) < lengths).astype(np.int64)
    return {"input_ids": ids * mask, "attention_mask": mask}


def test_a_request_goes_to_the_smallest_bucket_that_holds_it() -> None:
    words = "1x32 1x64 1x128 4x32 4x64 4x128 16x32 16x64 16x128"
    assert " ".join(map(in_words, BUCKETS.all())) == words
    for batch in range(1, 17):
        for sequence in range(1, 129):
            holding = [one for one in BUCKETS.all() if one[0] >= batch and one[1] >= sequence]
            assert BUCKETS.nearest(batch, sequence) == min(holding)
    for batch, sequence in ((17, 32), (1, 129)):
        words = f"{batch}x{sequence}: .* batches of 1 to 16 and sequences of 1 to 128"
        with pytest.raises(ValueError, match=f"a request of {words}"):
            BUCKETS.nearest(batch, sequence)


@pytest.mark.parametrize("bucket", [(3, 8), (3, 32), (16, 32)])
def test_padding_adds_masked_zeros_and_repeats_the_last_row(bucket: Bucket) -> None:
    """So that no row is masked whole."""
    given = inputs(3, 8)
    found = padded(given, bucket)
    assert list(found) == ["input_ids", "attention_mask"]
    for name, array in found.items():
        assert (array.shape, array.dtype) == (bucket, np.int64)
        np.testing.assert_array_equal(array[:3, :8], given[name])
        assert not array[:, 8:].any()
        np.testing.assert_array_equal(array[3:, :8], np.tile(given[name][-1], (bucket[0] - 3, 1)))
        # a request as large as its bucket is not copied, any other is
        assert np.shares_memory(array, given[name]) is (bucket == (3, 8))
