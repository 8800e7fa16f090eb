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
from tightrope.measure.traffic_serving import Query, Serving

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
    return Serving(engine, rows(), padded, batch=batch, classes=CLASSES)


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


def test_samples_that_were_not_asked_for_have_no_prediction_others_one_each_time() -> None:
    serving = served([None] * 11, 4)
    assert ask(serving, [2, 5, 5]) == [1000, 1001, 1002]
    asked = [index for index, prediction in enumerate(serving.predictions) if prediction != -1]
    assert asked == [2, 5]
    assert [serving.margins[index] > 0 for index in range(11)] == [i in (2, 5) for i in range(11)]


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
    shapes = []

    def engine(inputs: Arrays) -> np.ndarray:
        shapes.append(inputs["input_ids"].shape)
        return run(inputs)

    serving = served(padded, 4, engine)
    ask(serving, list(range(11)))
    if padded is BUCKETS:
        # exactly the length of their bucket
        assert shapes == [(4, 5), (4, 9), (2, 5), (1, 9)]
    assert serving.tokens == sum(LENGTHS)
    assert serving.padded_tokens == padding
    assert serving.batches == batches


@pytest.mark.parametrize(
    ("batch", "waiting", "coming", "sizes"),
    [
        # while the engine is busy
        (8, [0], [1, 2, 3], [1, 3]),
        # while others still wait
        (2, [0, 1, 2], [3], [2, 2]),
    ],
)
def test_what_comes_meanwhile_fills_the_next_batch(
    batch: int, waiting: list[int], coming: list[int], sizes: list[int]
) -> None:
    found: list[int] = []

    def engine(inputs: Arrays) -> np.ndarray:
        if not found:
            for index in coming:
                serving.inbox.put([Query(index, index)])
            serving.inbox.put(None)
        found.append(len(inputs["input_ids"]))
        return run(inputs)

    serving = served([None] * 11, batch, engine)
    serving.inbox.put([Query(index, index) for index in waiting])
    assert work(serving) == [0, 1, 2, 3]
    assert found == sizes


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
    assert ask(served([None] * 11, 4, failing_after(0, ValueError("called"))), []) == []


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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda logits: np.where(logits == logits[-1, 0], math.nan, logits), "not numbers"),
        (lambda logits: logits[:, :2], r"shape \[4, 2\] in the place of \[4, 3\]"),
        (lambda logits: None, r"shape \[\] in the place of \[4, 3\]"),
    ],
)
def test_wrong_logits_are_a_failure(change: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(WorkFailed, match=words) as caught:
        ask(served([None] * 11, 4, lambda inputs: change(run(inputs))), list(range(11)))
    assert caught.value.transient is False
