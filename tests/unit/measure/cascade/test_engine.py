"""A batch through a cascade: who answers what, and with which padding."""

from typing import Any

import numpy as np
from tightrope.measure.cascade.engine import Alone, Cascade, batches_of


class Recorded:
    """An engine that remembers the shapes of its requests."""

    def __init__(self, sign: float) -> None:
        self.sign = sign
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        """Return the mean token as the logit of class 1, negated by `sign`."""
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        self.shapes.append(ids.shape)
        score = self.sign * (ids * mask).sum(axis=1) / mask.sum(axis=1)
        return np.stack([np.zeros_like(score), score], axis=1).astype(np.float32)


def text(*ids: int) -> dict[str, np.ndarray]:
    return {"input_ids": np.array(ids), "attention_mask": np.ones(len(ids), dtype=np.int64)}


def example(*ids: int) -> Any:
    """The same text for both models; the tokenizer of the large one adds a token."""
    return text(*ids), text(*ids, ids[-1])


BATCH = [example(9, 9, 9, 9), example(1, 1), example(8), example(2, 2, 2)]


def test_the_unsure_rows_are_answered_by_the_large_model_in_one_shorter_batch() -> None:
    small, large = Recorded(1.0), Recorded(-1.0)
    reply = Cascade(small, large, threshold=0.99)(BATCH)
    # logits of 9 and 8 are sure, those of 1 and 2 are not
    assert reply.escalated.tolist() == [False, True, False, True]
    assert reply.logits[:, 1].tolist() == [9.0, -1.0, 8.0, -2.0]
    assert (small.shapes, large.shapes) == ([(4, 4)], [(2, 4)])


def test_at_threshold_0_the_large_model_is_not_called() -> None:
    large = Recorded(-1.0)
    reply = Cascade(Recorded(1.0), large, threshold=0.0)(BATCH)
    assert large.shapes == []
    assert not reply.escalated.any()


def test_above_every_confidence_the_answers_are_those_of_the_large_model() -> None:
    large = Recorded(-1.0)
    reply = Cascade(Recorded(1.0), large, threshold=1.1)(BATCH)
    alone = Alone(Recorded(-1.0), 1, escalated=True)(BATCH)
    assert np.array_equal(reply.logits, alone.logits)
    assert np.array_equal(reply.escalated, alone.escalated)
    assert large.shapes == [(4, 5)]


def test_the_outputs_of_the_small_engine_are_not_written_to() -> None:
    kept = np.array([[0.0, 0.1]] * 4, dtype=np.float32)
    kept.setflags(write=False)
    reply = Cascade(lambda _: kept, Recorded(-1.0), threshold=0.9)(BATCH)
    assert reply.escalated.all()
    assert kept[0, 1] == np.float32(0.1)


def test_examples_are_served_in_their_order() -> None:
    assert batches_of([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]
