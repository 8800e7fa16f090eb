"""What records say of a machine that changes its speed, from planted times."""

import math
import statistics

import pytest
from disturbed import facts
from latency_records import latency_record, latency_shape
from raced import HOST
from tightrope.records import latency
from tightrope.statistics import speedup
from tightrope.summary.results import latency_entry

BASELINE = "cpu-pytorch-fp32"
TIMES = (0.010, 0.012, 0.011, 0.009)


def record(seconds, variant="cpu-openvino-fp32", *, disturbed=0, **changes):
    """A variant twice as fast as its baseline, which takes so long; the first pairs are wild."""
    theirs = [[9.0]] * disturbed + [[seconds]] * 12
    both = (theirs, None) if variant == BASELINE else ([[0.5 * one] for (one,) in theirs], theirs)
    shape = latency_shape(*both, **facts(disturbed, 12))
    known = {"baseline": None if variant == BASELINE else BASELINE, "shapes": [shape]}
    return latency_record(variant, **{**known, **changes})


def spread_of(*records: latency.LatencyRecord) -> float:
    return latency.MachineSpeed(records).spread(records[0], 0)


def test_it_is_how_the_baseline_differs_from_job_to_job_its_own_job_too() -> None:
    records = [record(TIMES[0], BASELINE), *(record(one) for one in TIMES[1:])]
    expected = statistics.stdev(map(math.log, TIMES))
    machine = latency.MachineSpeed(records)
    assert [machine.spread(one, 0) for one in records] == pytest.approx([expected] * 4)
    disturbed = [record(one, disturbed=8) for one in TIMES]
    assert spread_of(*disturbed) == pytest.approx(expected)


@pytest.mark.parametrize(
    "changes",
    [{"model": "n"}, {"host": {**HOST, "cpu": "b"}}, {"baseline": "cpu-onnxruntime-fp32"}],
    ids=str,
)
def test_few_jobs_and_those_of_another_model_host_or_baseline_say_nothing(changes):
    records = [record(one) for one in TIMES[:3]]
    other = record(0.1, **changes)
    assert spread_of(*records, other) == spread_of(*records) > 0
    assert spread_of(other, *records) == spread_of(*records[1:]) == 0.0
    assert spread_of(record(0.01, shapes=[])) == 0.0


def test_a_speed_up_is_told_less_exactly_on_a_machine_that_changes_its_speed() -> None:
    one = record(0.01)
    shape = one.shapes[0]
    steady, unsteady = (latency_entry(one, 0, spread) for spread in (0.0, 0.2))
    assert (steady.machine_spread, unsteady.machine_spread) == (0.0, 0.2)
    assert steady.speedup.ratio == unsteady.speedup.ratio == pytest.approx(2.0)
    exact = speedup(
        shape.blocks_s, shape.baseline_blocks_s, loads=1, unsteady=latency.LOAD_ORDER_STD
    )
    assert steady.speedup.high == exact.high
    assert unsteady.speedup.high > 2.0 * math.exp(1.95 * 0.3 * 0.2)
    # one load leaves the order of loading open, two do not
    assert latency.drift_std(0.0, 2) == 0.0
    assert latency.drift_std(0.1, 1) == pytest.approx(math.hypot(0.03, latency.LOAD_ORDER_STD))
