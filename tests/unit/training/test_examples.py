"""How examples become batches, and how they change from one epoch to the next."""

import threading
import time
from functools import partial

import numpy as np
import pytest
from tightrope.training.examples import (
    draw_epochs,
    draw_validation,
    flip_crop,
    prefetched,
    split_micro_batches,
)


def test_batches_hold_texts_of_about_one_length_and_every_text_once_an_epoch() -> None:
    lengths = [5 + i % 40 for i in range(1000)]
    epochs = list(draw_epochs(1000, lengths, size=8, epochs=2.5, seed=0))
    assert [sum(map(len, batches)) for batches in epochs] == [1000, 1000, 500]
    batches = [batch for batches in epochs for batch in batches]
    assert set(np.bincount(np.concatenate(batches), minlength=1000)) == {2, 3}
    spread = [max(lengths[i] for i in b) - min(lengths[i] for i in b) for b in batches]
    assert np.mean(spread) < 4


def test_without_lengths_examples_are_shuffled_anew_each_epoch() -> None:
    first, second = draw_epochs(100, None, size=32, epochs=2, seed=1)
    assert [len(batch) for batch in first] == [32, 32, 32, 4]
    for batches in (first, second):
        assert sorted(index for batch in batches for index in batch) == list(range(100))
    assert first != second
    assert first != next(draw_epochs(100, None, size=32, epochs=2, seed=2))


def test_parts_of_a_batch_hold_all_of_it_and_a_tenth_is_set_apart_by_the_seed() -> None:
    assert split_micro_batches(list(range(10)), 1) == [list(range(10))]
    assert [len(part) for part in split_micro_batches(list(range(10)), 4)] == [2, 3, 2, 3]
    assert split_micro_batches([7, 8], 4) == [[7], [8]]
    taught, judged = draw_validation(200, 0)
    assert (len(taught), len(judged)) == (180, 20)
    assert sorted(taught + judged) == list(range(200))
    assert draw_validation(200, 0) == (taught, judged)
    assert draw_validation(200, 1)[1] != judged
    assert len(draw_validation(2, 0)[1]) == 1


@pytest.mark.parametrize("ahead", [0, 3])
def test_results_and_errors_of_tasks_come_in_their_order(ahead: int) -> None:
    def task(number: int) -> tuple[int, bool]:
        time.sleep(0.002 * (number % 3))
        assert number < 19
        return number, threading.current_thread() is threading.main_thread()

    results = prefetched((partial(task, number) for number in range(20)), ahead=ahead)
    assert [next(results) for _ in range(19)] == [(number, ahead == 0) for number in range(19)]
    with pytest.raises(AssertionError):
        next(results)


def test_an_image_is_moved_by_at_most_an_eighth_and_mirrored_in_half_the_cases() -> None:
    image = np.arange(1, 1 + 3 * 16 * 24, dtype=np.float32).reshape(3, 16, 24)
    generator, mirrored, moves = np.random.default_rng(0), 0, set()
    for _ in range(400):
        found = flip_crop({"pixel_values": image}, generator)["pixel_values"]
        assert (found.shape, found.dtype) == (image.shape, np.float32)
        assert found.flags.c_contiguous
        # a pixel that every move keeps
        (channel, row, column) = np.argwhere(found == image[1, 8, 12])[0]
        flipped = found[channel, row, column + 1] < found[channel, row, column]
        mirrored += bool(flipped)
        down, right = 8 - row, 12 - (23 - column if flipped else column)
        moves.add((down, right))
        kept = (16 - abs(down)) * (24 - abs(right))
        assert np.count_nonzero(found) == 3 * kept
    assert 150 < mirrored < 250
    assert {down for down, _ in moves} == set(range(-2, 3))
    assert {right for _, right in moves} == set(range(-3, 4))
