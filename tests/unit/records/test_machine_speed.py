"""What records say of a machine that changes its speed, from planted times."""

import math
import statistics
from typing import Any

import pytest
from disturbed import facts
from raced import HOST
from tightrope.records.latency import LatencyRecord
from tightrope.records.machine_speed import FEWEST_JOBS, LOAD_ORDER_STD, MachineSpeed, drift_std
from tightrope.statistics import speedup
from tightrope.summary.results import latency_entry

BASELINE = "cpu-pytorch-fp32"
TIMES = (0.010, 0.012, 0.011, 0.009)


def record(
    seconds: float, variant: str = "cpu-openvino-fp32", *, disturbed: int = 0, **changes: Any
) -> LatencyRecord:
    """A variant twice as fast as its baseline, which takes so long; the first pairs are wild."""
    alone = variant == BASELINE
    theirs = [[9.0]] * disturbed + [[seconds]] * 12
    own = [[0.5 * one] for (one,) in theirs]
    blocks = {
        "blocks_s": theirs if alone else own,
        "baseline_blocks_s": None if alone else theirs,
    }
    rest = {"first_call_s": 0.1, "stop": "width", "threads_busy": 1, "cores_used": 1.0}
    shape = {"batch": 1, "sequence": 64, **blocks, **facts(disturbed, 12), **rest, "idle_share": 0}
    known = {
        **{"model": "m", "variant": variant, "host": HOST, "libraries": {}, "threads": 1},
        **{"plan": {"pairs": 12, "loads": 1}, "processors": [0]},
        **{"baseline": None if alone else BASELINE, "shapes": [shape]},
    }
    return LatencyRecord(**{**known, **changes})


def test_it_is_how_the_baseline_differs_from_job_to_job_its_own_job_too() -> None:
    records = [record(TIMES[0], BASELINE), *(record(one) for one in TIMES[1:])]
    expected = statistics.stdev(map(math.log, TIMES))
    machine = MachineSpeed(records)
    assert [machine.spread(one, 0) for one in records] == pytest.approx([expected] * 4)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "n"},
        {"host": {**HOST, "cpu": "b"}},
        {"baseline": "cpu-onnxruntime-fp32"},
    ],
    ids=str,
)
def test_jobs_of_another_model_host_or_baseline_say_nothing(changes: dict[str, Any]) -> None:
    records = [record(one) for one in TIMES[:3]]
    other = record(0.1, **changes)
    machine = MachineSpeed([*records, other])
    assert machine.spread(records[0], 0) == MachineSpeed(records).spread(records[0], 0) > 0
    assert machine.spread(other, 0) == 0.0


def test_few_jobs_say_nothing_and_disturbed_pairs_do_not_count() -> None:
    few = [record(one) for one in TIMES[: FEWEST_JOBS - 1]]
    assert MachineSpeed(few).spread(few[0], 0) == 0.0
    quiet, disturbed = ([record(one, disturbed=n) for one in TIMES] for n in (0, 8))
    assert MachineSpeed(disturbed).spread(disturbed[0], 0) == pytest.approx(
        MachineSpeed(quiet).spread(quiet[0], 0)
    )
    failed = record(0.01, shapes=[])
    assert MachineSpeed([failed]).spread(failed, 0) == 0.0


def test_a_speed_up_is_told_less_exactly_on_a_machine_that_changes_its_speed() -> None:
    one = record(0.01)
    shape = one.shapes[0]
    steady, unsteady = (latency_entry(shape, one, spread) for spread in (0.0, 0.2))
    assert (steady["machine_spread"], unsteady["machine_spread"]) == (0.0, 0.2)
    assert steady["speedup"]["ratio"] == unsteady["speedup"]["ratio"] == pytest.approx(2.0)
    exact = speedup(shape["blocks_s"], shape["baseline_blocks_s"], loads=1, unsteady=LOAD_ORDER_STD)
    assert steady["speedup"]["high"] == exact.high
    assert unsteady["speedup"]["high"] > 2.0 * math.exp(1.95 * 0.3 * 0.2)


def test_one_load_leaves_the_order_of_loading_open_and_two_do_not() -> None:
    assert drift_std(0.0, 2) == 0.0
    assert drift_std(0.0, 1) == LOAD_ORDER_STD
    assert drift_std(0.1, 1) == pytest.approx(math.hypot(0.03, LOAD_ORDER_STD))
