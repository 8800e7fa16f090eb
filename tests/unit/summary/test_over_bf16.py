"""Speed-ups over PyTorch eager in bf16, from speed-ups over the baseline and from races."""

import math
from typing import Any

import numpy as np
import pytest
from raced import PLACE, SHAPE, planted, race_record, race_shape
from tightrope.statistics import Interval, speedup
from tightrope.summary.over_bf16 import quotient, with_speedups_over_bf16
from tightrope.summary.races import race_entries, ratio_between
from tightrope.summary.results import ratio_entry
from tightrope.summary.speed_scale import with_races

BASELINE, BF16, QUICK = "cpu-pytorch-fp32", "cpu-pytorch-bf16", "cpu-openvino-bf16"
SECONDS = 0.01
LOST = {"ratio": None, "low": None, "high": None, "verdict": "disturbed"}


def timed(ratio: float | None, spread: float = 0.02, **row: Any) -> dict[str, Any]:
    """A row that is `ratio` times as fast as a baseline of 10 ms."""
    ends = ratio and Interval(ratio, ratio * math.exp(-spread), ratio * math.exp(spread))
    own = SECONDS / (ratio or 1)
    times = {"p50_s": own, "mean_s": own, "speedup": ends and ratio_entry(ends)}
    return {**SHAPE, **times, "speedup_over_bf16": None, **row}


def result(variant: str, *rows: dict[str, Any], **changes: Any) -> dict[str, Any]:
    known = {"model": "m", "variant": variant, "host": PLACE, "device": "cpu"}
    return {**known, "baseline": BASELINE, "latency": list(rows), **changes}


def over(*results: dict[str, Any], races: Any = None) -> dict[str, Any]:
    """By variant the speed-up over bf16 of its first row."""
    found = with_speedups_over_bf16(with_races(list(results), races or {}), races or {})
    return {one["variant"]: one["latency"][0]["speedup_over_bf16"] for one in found}


def test_it_is_the_quotient_of_two_speed_ups_and_its_interval_holds_both_of_theirs() -> None:
    found = over(
        result(BASELINE, timed(None)),
        result(BF16, timed(2.0, 0.03)),
        result(QUICK, timed(3.0, 0.04)),
    )
    assert found[BF16] is None
    assert found[QUICK] == {
        "ratio": pytest.approx(1.5),
        "low": pytest.approx(1.5 * math.exp(-0.05)),
        "high": pytest.approx(1.5 * math.exp(0.05)),
        "verdict": "faster",
    }


def test_the_baseline_is_as_much_slower_as_bf16_is_faster() -> None:
    found = over(result(BASELINE, timed(None)), result(BF16, timed(2.0, 0.03)))
    assert found[BASELINE]["ratio"] == pytest.approx(0.5)
    assert found[BASELINE]["high"] == pytest.approx(0.5 * math.exp(0.03))
    assert found[BASELINE]["verdict"] == "slower"


def test_those_that_raced_have_the_ratio_of_the_race() -> None:
    """Paired with the baseline, in other minutes, bf16 had looked the faster."""
    shape = race_shape(planted({BF16: 0.004, QUICK: 0.003}, 40))
    sizes = {("m", name): 100 for name in (BF16, QUICK)}
    races = race_entries([race_record([shape])], sizes, accept_disturbed=False)
    results = [result(BASELINE, timed(None)), result(BF16, timed(3.1)), result(QUICK, timed(3.0))]
    (race,) = races.values()
    expected = ratio_between(race, QUICK, BF16)
    found = over(*results, races=races)[QUICK]
    assert found == {name: expected[name] for name in ("ratio", "low", "high", "verdict")}
    assert found["ratio"] == pytest.approx(4 / 3, rel=0.01)


@pytest.mark.parametrize(
    "others",
    [
        [],
        [result(BF16, timed(2.0, speedup=LOST, p50_s=None, mean_s=None))],
        [result(BF16, timed(2.0), host="another")],
        [result(BF16, timed(2.0), model="another")],
        [result(BF16, timed(2.0, batch=8))],
        [result(BF16, timed(2.0, tokens=32))],
        [result("cuda-pytorch-bf16", timed(2.0), device="cuda", baseline="cuda-pytorch-fp32")],
    ],
    ids=["none", "disturbed", "host", "model", "batch", "tokens", "device"],
)
def test_without_a_time_of_bf16_in_the_same_place_there_is_none(others: list[Any]) -> None:
    found = over(result(BASELINE, timed(None)), result(QUICK, timed(3.0)), *others)
    assert found[QUICK] is None
    assert found[BASELINE] is None


def test_a_disturbed_variant_has_none() -> None:
    lost = timed(2.0, speedup=LOST, p50_s=None, mean_s=None)
    found = over(result(BASELINE, timed(None)), result(BF16, timed(2.0)), result(QUICK, lost))
    assert found[QUICK] is None


def test_where_one_interval_is_unknown_the_quotients_is_unknown_too() -> None:
    found = quotient(Interval(3.0, 0.0, math.inf), Interval(2.0, 1.9, 2.1))
    assert found == (pytest.approx(1.5), 0.0, math.inf)


def test_the_interval_holds_the_true_ratio_about_nineteen_times_in_twenty() -> None:
    """The baseline was timed anew beside each of the two, at another speed of the machine."""
    draw = np.random.default_rng(0)

    def paired(seconds: float) -> Interval:
        drift = draw.lognormal(0, 0.1) * draw.lognormal(0, 0.05, 20)
        # an engine that is loaded differs by half a percent from the next load of it
        own, theirs = (
            one * drift * draw.lognormal(0, 0.005) * draw.lognormal(0, 0.02, 20)
            for one in (seconds, SECONDS)
        )
        blocks = ([[one] for one in times] for times in (own.tolist(), theirs.tolist()))
        return speedup(*blocks, loads=1)

    held = 0
    for _ in range(400):
        found = quotient(paired(0.003), paired(0.004))
        held += found.low <= 4 / 3 <= found.high
    assert 0.92 <= held / 400 <= 0.99
