import threading
import time

import numpy as np
import pytest
from tightrope.training.examples import (
    draw_epochs,
    draw_validation,
    prefetched,
    split_micro_batches,
)


def test_batches_hold_texts_of_about_one_length_and_every_text_once_an_epoch() -> None:
    lengths = [5 + i % 40 for i in range(1000)]
    epochs = list(draw_epochs(1000, lengths, size=8, epochs=2.5, seed=0))
    assert [sum(map(len, batches)) for batches in epochs] == [1000, 1000, 500]
    batches = [batch for batches in epochs for batch in batches]
    counts = np.bincount([index for batch in batches for index in batch], minlength=1000)
    assert set(counts) == {2, 3}
    spread = [max(lengths[i] for i in b) - min(lengths[i] for i in b) for b in batches]
    assert np.mean(spread) < 4


def test_without_lengths_examples_are_shuffled_anew_each_epoch() -> None:
    first, second = draw_epochs(100, None, size=32, epochs=2, seed=1)
    assert [len(batch) for batch in first] == [32, 32, 32, 4]
    for batches in (first, second):
        assert sorted(index for batch in batches for index in batch) == list(range(100))
    assert first != second
    assert first != next(draw_epochs(100, None, size=32, epochs=2, seed=2))


def test_the_parts_of_a_batch_are_of_about_equal_size_and_hold_all_of_it() -> None:
    assert split_micro_batches(list(range(10)), 1) == [list(range(10))]
    assert [len(part) for part in split_micro_batches(list(range(10)), 4)] == [2, 3, 2, 3]
    assert split_micro_batches([7, 8], 4) == [[7], [8]]


def test_a_tenth_is_set_apart_by_the_seed_and_not_trained_on() -> None:
    taught, judged = draw_validation(200, 0)
    assert (len(taught), len(judged)) == (180, 20)
    assert sorted(taught + judged) == list(range(200))
    assert draw_validation(200, 0) == (taught, judged)
    assert draw_validation(200, 1)[1] != judged
    assert len(draw_validation(2, 0)[1]) == 1


@pytest.mark.parametrize("ahead", [0, 3, 50])
def test_results_come_in_the_order_of_the_tasks(ahead: int) -> None:
    def task(number: int) -> int:
        time.sleep(0.002 * (number % 3))
        return number

    tasks = (lambda number=number: task(number) for number in range(20))
    assert list(prefetched(tasks, ahead=ahead)) == list(range(20))


def test_the_error_of_a_task_is_raised_in_its_place() -> None:
    tasks = [lambda: threading.current_thread().name, lambda: 1 // 0, lambda: "never"]
    results = prefetched(tasks, ahead=2)
    assert next(results) != threading.current_thread().name
    with pytest.raises(ZeroDivisionError):
        next(results)
