"""One scale for what raced and what did not."""

import math
from typing import Any

import pytest
import results
from raced import planted, race_record, race_shape
from results import row
from tightrope.decide.race import race_entries, ratio_between, with_races
from tightrope.decide.result import NO_SPEEDUP, Ratio, Result

BASELINE, BEHIND = "cpu-pytorch-fp32", "cpu-onnxruntime-fp32"
QUICK, SLOW, THIRD = "cpu-openvino-bf16", "cpu-openvino-fp32", "cpu-openvino-int8-nncf-64"
SECONDS = 0.01


def result(variant: str, ratio: float | None, spread: float = 0.02, **changes: Any) -> Result:
    """A result that is `ratio` times as fast as a baseline of 10 ms."""
    return results.result(variant, row(ratio, spread=spread, **changes))


def scaled(*results: Result, **seconds: float) -> Any:
    """By variant its row, and the entry of the race with these seconds a call."""
    names = {"base": BASELINE, "quick": QUICK, "slow": SLOW, "third": THIRD}
    shape = race_shape(planted({names[name]: one for name, one in seconds.items()}, 40))
    sizes = {("m", name): 100 for name in (BASELINE, QUICK, SLOW, THIRD)}
    races = race_entries([race_record([shape])], sizes, accept_disturbed=False)
    found = with_races([result(BASELINE, None), *results], races)
    (race,) = races.values()
    return {one.variant: one.latency[0] for one in found}, race


def test_who_did_not_race_keeps_its_speed_up_and_has_the_baselines_time_over_it() -> None:
    rows, _ = scaled(result(QUICK, 3.0), result(BEHIND, 1.5), quick=0.003, slow=0.0031)
    assert rows[BEHIND].raced is False
    assert rows[BEHIND].speedup == result(BEHIND, 1.5).latency[0].speedup
    for name in (QUICK, BEHIND):
        assert rows[name].paired_s == pytest.approx(SECONDS / rows[name].speedup.ratio)
    assert rows[BASELINE].paired_s == SECONDS
    row = with_races([result(BASELINE, None), result(QUICK, 2.5)], {})[1].latency[0]
    assert (row.raced, row.paired_s) == (False, pytest.approx(SECONDS / 2.5))
    # without a baseline the median of its own
    assert with_races([result(QUICK, None, p50_s=0.004)], {})[0].latency[0].paired_s == 0.004


@pytest.mark.parametrize("slow", [2.2, 7.0])
def test_who_did_not_race_because_it_was_behind_stays_behind(slow: float) -> None:
    """Another finalist with a wide interval would draw the scale below it or far above."""
    behind = result(BEHIND, 2.9 * math.exp(-0.03), 0.001)
    finalists = result(QUICK, 3.0, 0.02), result(SLOW, slow, 0.9)
    rows, _ = scaled(*finalists, behind, quick=0.00333, slow=0.00334)
    assert rows[QUICK].speedup.ratio > rows[BEHIND].speedup.ratio
    assert abs(math.log(rows[QUICK].speedup.ratio / 3.0)) < 0.02 + 1e-9


def test_a_baseline_that_raced_is_the_scale() -> None:
    rows, race = scaled(result(QUICK, 1.4), base=0.010, quick=0.008)
    expected = ratio_between(race, QUICK, BASELINE).ratio
    assert rows[QUICK].speedup.ratio == pytest.approx(expected)
    assert (rows[BASELINE].speedup, rows[BASELINE].raced) == (None, False)


def test_an_interval_holds_that_of_the_scale_and_that_of_the_race() -> None:
    rows, race = scaled(result(QUICK, 3.0, 0.05), result(SLOW, 2.5, 0.05), quick=0.003, slow=0.004)

    def half(speedup: Ratio) -> float:
        return math.log(speedup.high / speedup.low) / 2

    own = half(ratio_between(race, SLOW, QUICK))
    assert half(rows[QUICK].speedup) == pytest.approx(0.05)
    assert half(rows[SLOW].speedup) == pytest.approx(math.hypot(0.05, own))


def test_times_agree_with_the_speed_ups_also_where_the_baseline_was_disturbed() -> None:
    """The quicker one was measured in minutes in which the machine was slower.

    The baseline took 15 ms beside it, and 10 ms beside the other one.
    """
    lost = result(BASELINE, None, p50_s=None, mean_s=None)
    found = with_races([lost, result(QUICK, 2.5, p50_s=0.006), result(SLOW, 2.0, p50_s=0.005)], {})
    baseline, quick, slow = (one.latency[0].paired_s for one in found)
    assert baseline is None
    disturbed = result(QUICK, 2.0, speedup=NO_SPEEDUP, p50_s=None, mean_s=None)
    (_, found) = with_races([result(BASELINE, None), disturbed], {})
    assert (found.latency[0].paired_s, found.latency[0].speedup) == (None, NO_SPEEDUP)
    assert slow / quick == pytest.approx(2.5 / 2.0)
    assert quick == pytest.approx(0.0125 / 2.5)
    # its own job is one of three
    own = result(BASELINE, None, p50_s=0.04, mean_s=0.04)
    found = with_races([own, result(QUICK, 2.5, p50_s=0.006), result(SLOW, 2.0, p50_s=0.005)], {})
    rows = [one.latency[0] for one in found]
    assert [one.paired_s for one in rows] == pytest.approx([0.015, 0.006, 0.0075])
    assert [one.throughput_per_s for one in rows] == [1 / one.paired_s for one in rows]
