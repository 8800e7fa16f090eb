import math
import time
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.texts import text_arrays
from tightrope.measure.traffic.serving import Padded, Query, Serving

CLASSES = 3
LENGTHS = [5, 2, 9, 9, 1, 7, 3, 4, 8, 6, 2]
BUCKETS = [5, 5, 9, 9, 5, 9, 5, 5, 9, 9, 5]
WEIGHTS = np.random.default_rng(1).normal(size=(100, CLASSES))


def rows() -> list[Arrays]:
    draw = np.random.default_rng(0)
    return [text_arrays(draw.integers(100, size=length)) for length in LENGTHS]


def run(inputs: Arrays) -> np.ndarray:
    """A bag of words, which padding does not change."""
    return (WEIGHTS[inputs["input_ids"]] * inputs["attention_mask"][..., None]).sum(axis=1)


def served(padded: list[int | None], batch: int, engine: Callable[..., Any] = run) -> Serving:
    return Serving(Padded(engine, rows()), LENGTHS, padded, batch=batch, classes=CLASSES)


def ask(serving: Serving, indices: list[int]) -> list[int]:
    """Ask for these samples, ids counted from 1000; the ids that were completed."""
    serving.inbox.put([Query(1000 + place, index) for place, index in enumerate(indices)])
    serving.inbox.put(None)
    return work(serving)


def work(serving: Serving) -> list[int]:
    completed: list[int] = []
    serving.work(completed.extend)
    return completed


def failing_after(calls: int, error: BaseException) -> Callable[[Arrays], np.ndarray]:
    left = iter(range(calls))

    def engine(inputs: Arrays) -> np.ndarray:
        if next(left, None) is None:
            raise error
        return run(inputs)

    return engine


@pytest.mark.parametrize("padded", [[None] * 11, [16] * 11, BUCKETS])
@pytest.mark.parametrize("batch", [1, 4, 100])
def test_answers_are_those_of_the_engine_alone(padded: list[int | None], batch: int) -> None:
    serving = served(padded, batch)
    completed = ask(serving, list(range(11)))
    logits = np.concatenate([run(stack([row])) for row in rows()])
    highest = np.sort(logits, axis=1)
    assert serving.predictions == logits.argmax(axis=1).tolist()
    assert serving.margins == pytest.approx((highest[:, -1] - highest[:, -2]).tolist())
    assert sorted(completed) == list(range(1000, 1011))


def test_samples_that_were_not_asked_for_have_no_prediction() -> None:
    serving = served([None] * 11, 4)
    ask(serving, [2, 5])
    asked = [index for index, prediction in enumerate(serving.predictions) if prediction != -1]
    assert asked == [2, 5]
    assert [serving.margins[index] > 0 for index in range(11)] == [i in (2, 5) for i in range(11)]


def test_a_sample_that_is_asked_for_many_times_is_answered_each_time() -> None:
    assert ask(served([None] * 11, 3), [4, 4, 4, 4]) == [1000, 1001, 1002, 1003]


@pytest.mark.parametrize(
    ("padded", "padding", "batches"),
    [
        ([16] * 11, 11 * 16 - sum(LENGTHS), 3),
        (BUCKETS, sum(BUCKETS) - sum(LENGTHS), 4),
        # batches of 5 2 9 9, 1 7 3 4 and 8 6 2
        ([None] * 11, 4 * 9 + 4 * 7 + 3 * 8 - sum(LENGTHS), 3),
    ],
)
def test_tokens_of_samples_and_of_padding_are_counted_apart(
    padded: list[int | None], padding: int, batches: int
) -> None:
    serving = served(padded, 4)
    ask(serving, list(range(11)))
    assert serving.tokens == sum(LENGTHS)
    assert serving.padded_tokens == padding
    assert serving.batches == batches


def test_batches_have_exactly_the_length_of_their_bucket() -> None:
    shapes = []

    def engine(inputs: Arrays) -> np.ndarray:
        shapes.append(inputs["input_ids"].shape)
        return run(inputs)

    ask(served(BUCKETS, 4, engine), list(range(11)))
    assert shapes == [(4, 5), (4, 9), (2, 5), (1, 9)]


def test_what_comes_while_the_engine_is_busy_is_its_next_batch() -> None:
    sizes = []

    def engine(inputs: Arrays) -> np.ndarray:
        if not sizes:
            serving.inbox.put([Query(1, 1)])
            serving.inbox.put([Query(2, 2), Query(3, 3)])
            serving.inbox.put(None)
        sizes.append(len(inputs["input_ids"]))
        return run(inputs)

    serving = served([None] * 11, 8, engine)
    serving.inbox.put([Query(0, 0)])
    assert work(serving) == [0, 1, 2, 3]
    assert sizes == [1, 3]


def test_what_comes_while_others_still_wait_fills_the_next_batch() -> None:
    batches = []

    def engine(inputs: Arrays) -> np.ndarray:
        if not batches:
            serving.inbox.put([Query(3, 3)])
            serving.inbox.put(None)
        batches.append(len(inputs["input_ids"]))
        return run(inputs)

    serving = served([None] * 11, 2, engine)
    serving.inbox.put([Query(index, index) for index in range(3)])
    assert work(serving) == [0, 1, 2, 3]
    assert batches == [2, 2]


def test_queries_of_another_thread_are_answered_as_they_come() -> None:
    serving = served(BUCKETS, 4)

    def asks() -> None:
        for ticket in range(300):
            serving.inbox.put([Query(ticket, ticket % 11)])
            if ticket % 50 == 0:
                time.sleep(0.01)
        serving.inbox.put(None)

    asking = Thread(target=asks)
    asking.start()
    completed = work(serving)
    asking.join()
    assert sorted(completed) == list(range(300))
    assert -1 not in serving.predictions


def test_without_a_query_it_ends_and_the_engine_is_not_called() -> None:
    serving = served([None] * 11, 4, failing_after(0, ValueError("called")))
    serving.inbox.put(None)
    assert work(serving) == []


@pytest.mark.parametrize(
    "error", [ValueError("broken"), MemoryError(), SystemExit(3), WorkFailed("out", True)]
)
@pytest.mark.parametrize("good", [0, 2])
def test_after_an_error_every_query_is_completed_once_and_the_error_raised_at_the_end(
    error: BaseException, good: int
) -> None:
    serving = served([None] * 11, 4, failing_after(good, error))
    serving.inbox.put([Query(index, index) for index in range(11)])
    serving.inbox.put([Query(11, 0)])
    serving.inbox.put(None)
    completed: list[int] = []
    with pytest.raises(type(error)) as caught:
        serving.work(completed.extend)
    assert caught.value is error
    assert completed == list(range(12))
    assert serving.batches == good


def test_the_engine_is_not_called_again_after_its_error() -> None:
    calls = []

    def engine(inputs: Arrays) -> np.ndarray:
        calls.append(inputs)
        raise ValueError(f"number {len(calls)}")

    with pytest.raises(ValueError, match="number 1"):
        ask(served([None] * 11, 2, engine), list(range(11)))
    assert len(calls) == 1


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_logits_that_are_not_numbers_are_a_failure(number: float) -> None:
    def engine(inputs: Arrays) -> np.ndarray:
        logits = run(inputs)
        logits[-1, 0] = number
        return logits

    with pytest.raises(WorkFailed, match="logits that are not numbers") as caught:
        ask(served([None] * 11, 4, engine), list(range(11)))
    assert caught.value.transient is False


@pytest.mark.parametrize(
    ("engine", "shape"),
    [
        (lambda inputs: run(inputs)[:-1], r"\[3, 3\]"),
        (lambda inputs: run(inputs)[:, :2], r"\[4, 2\]"),
        (lambda inputs: run(inputs)[..., None], r"\[4, 3, 1\]"),
        (lambda inputs: None, r"\[\]"),
    ],
)
def test_logits_of_another_shape_are_a_failure(engine: Callable[..., Any], shape: str) -> None:
    with pytest.raises(WorkFailed, match=rf"shape {shape} in the place of \[4, 3\]") as caught:
        ask(served([None] * 11, 4, engine), list(range(11)))
    assert caught.value.transient is False
