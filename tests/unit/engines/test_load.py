from typing import Any

import numpy as np
import pytest
from tightrope.engines.load import within
from tightrope.inputs.arrays import Arrays
from tightrope.signature import of_images, of_texts


def tokens(batch: int, sequence: int) -> Arrays:
    ones = np.ones((batch, sequence), dtype=np.int64)
    return {"input_ids": ones, "attention_mask": ones}


def lengths(inputs: Arrays) -> Any:
    """A small engine: the sum of each row's mask."""
    return inputs["attention_mask"].sum(axis=1)


def test_a_request_gets_an_answer_or_beyond_the_limit_an_error() -> None:
    run = within(lengths, of_texts(), 64)
    for batch, sequence in ((3, 1), (3, 64), (100, 8)):
        assert run(tokens(batch, sequence)).tolist() == [sequence] * batch
    assert within(lengths, of_texts(), None) is lengths
    # it is not run
    run = within(lambda inputs: 1 / 0, of_texts(), 64)
    with pytest.raises(ValueError, match=r"a request of 65 tokens: .* takes 1 to 64$"):
        run(tokens(1, 65))
    # the clock of a GPU is not lost to it
    assert within(OnGpu(), of_texts(), 64).device_seconds(tokens(1, 8), 3) == [1e-3] * 3
    assert within(lengths, of_texts(), 64).device_seconds is None


class OnGpu:
    """An engine that can tell the time on its device."""

    def __call__(self, inputs: Arrays) -> Any:
        return lengths(inputs)

    def device_seconds(self, inputs: Arrays, calls: int) -> list[float]:
        return [1e-3] * calls


@pytest.mark.parametrize("shape", [(1, 3, 16, 24), (9, 3, 16, 24)])
def test_any_batch_of_images_of_the_one_size_is_answered(shape: tuple[int, ...]) -> None:
    run = within(lambda inputs: len(inputs["pixel_values"]), of_images(16, 24), None)
    assert run({"pixel_values": np.zeros(shape, np.float32)}) == shape[0]


@pytest.mark.parametrize("shape", [(1, 3, 24, 16), (1, 3, 16, 25), (1, 1, 16, 24)])
def test_images_of_another_size_are_an_error_that_names_both(shape: tuple[int, ...]) -> None:
    run = within(lambda inputs: 1 / 0, of_images(16, 24), None)
    with pytest.raises(
        ValueError, match=rf"a request of {'x'.join(map(str, shape[1:]))} pixels: .* 3x16x24"
    ):
        run({"pixel_values": np.zeros(shape, np.float32)})
