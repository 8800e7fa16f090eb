"""What limits requests hides nothing of an engine; the limits: tests/engines/test_parity.py."""

import numpy as np
from tightrope.engines.load import within
from tightrope.inputs.arrays import Arrays
from tightrope.signature import of_texts


class OnGpu:
    """An engine that can tell the time on its device: the sum of each row's mask."""

    def __call__(self, inputs: Arrays) -> np.ndarray:
        return inputs["attention_mask"].sum(axis=1)

    def device_seconds(self, inputs: Arrays, calls: int) -> list[float]:
        return [1e-3] * calls


def test_the_clock_of_a_gpu_is_not_lost_to_the_limit_and_without_a_limit_there_is_no_wrapper():
    engine, ones = OnGpu(), np.ones((3, 8), np.int64)
    tokens = {"input_ids": ones, "attention_mask": ones}
    limited = within(engine, of_texts(), 64)
    assert limited(tokens).tolist() == [8] * 3
    assert limited.device_seconds(tokens, 3) == [1e-3] * 3
    assert within(engine.__call__, of_texts(), 64).device_seconds is None
    assert within(engine, of_texts(), None) is engine
