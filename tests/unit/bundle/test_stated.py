"""The interval in which another measurement should lie."""

import math
from typing import Any

import numpy as np
import pytest
from disturbed import facts
from tightrope.bundle.facts import interval
from tightrope.decide.result import LatencyRow, Shape
from tightrope.records.latency import LOAD_ORDER_STD, TimedShape


def shape(blocks: list[float], hit: int = 0) -> TimedShape:
    known = {"blocks_s": [[one] for one in blocks], **facts(hit, len(blocks) - hit)}
    return TimedShape(batch=2, sequence=16, **known)


def row(**fields: Any) -> LatencyRow:
    return LatencyRow(Shape(2, 16), **fields)


def test_blocks_that_do_not_scatter_leave_what_a_load_adds() -> None:
    found = interval(shape([0.01] * 8), row())
    assert found is not None
    assert found["latency_s"] == pytest.approx(0.01)
    scaled = interval(shape([0.01] * 8), row(paired_s=0.02))
    assert scaled is not None and scaled["latency_s"] == pytest.approx(0.02), "as in the report"
    assert math.log(found["high_s"] / 0.01) == pytest.approx(1.96 * LOAD_ORDER_STD, rel=1e-3)
    assert found["low_s"] * found["high_s"] == pytest.approx(0.01**2)
    assert (found["blocks"], found["provisional"]) == (8, False)
    assert found["shape"] == {"batch": 2, "sequence": 16}
    wide = interval(shape([0.01] * 8), row(machine_spread=0.1))
    assert wide is not None and wide["high_s"] > 1.2 * 0.01 > found["high_s"]
    # disturbed ones state nothing unless the summary takes them
    assert interval(shape([0.01] * 4, hit=3), row()) is None
    found = interval(shape([0.01] * 4, hit=4), row(provisional=True))
    assert found is not None and found["provisional"] and found["blocks"] == 4


def test_it_holds_95_of_100_further_blocks() -> None:
    generator = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        times = np.exp(generator.normal(math.log(0.01), 0.05, 31))
        found = interval(shape(times[:30].tolist()), row())
        assert found is not None
        inside += found["low_s"] <= times[30] <= found["high_s"]
    assert 0.92 <= inside / 400 <= 0.985
