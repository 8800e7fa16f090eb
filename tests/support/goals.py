"""Results, traffic and goals by hand, of variants whose numbers are planted."""

from typing import Any

import results
from raced import SHAPE, decided_shape, race_record
from tightrope.decide.bounds import Goal, Minimized
from tightrope.decide.goal import GoalDecision, decisions
from tightrope.decide.phrases import said
from tightrope.decide.race import race_entries
from tightrope.decide.recommend import Recommendation, recommendations
from tightrope.decide.result import Accuracy, LatencyRow, Ratio, Result, Shape
from tightrope.statistics import Interval

BASELINE, BF16, INT8 = "cpu-pytorch-fp32", "cpu-openvino-bf16", "cpu-onnxruntime-int8-minmax-64"
SMALL = "cpu-onnxruntime-fp32"
BATCH = Shape(batch=16, sequence=64)


def goal(minimize: Minimized, **given: Any) -> Goal:
    return Goal(minimize, **given)


def row(ms: float | None, ratio: float | None = None, shape: Shape = SHAPE, **changes: Any) -> Any:
    """A row of `ms` per call, so many times as fast as the baseline, give or take 10 %."""
    seconds = ms and ms / 1000
    times = {"paired_s": seconds, "p50_s": seconds, "p99_s": seconds and 1.5 * seconds}
    times["throughput_per_s"] = seconds and shape.batch / seconds
    ends = Interval(ratio, ratio / 1.1, ratio * 1.1) if ratio else None
    known = {"speedup": Ratio.of(ends) if ends else None, "samples": 1000, "stop": "minimum"}
    return LatencyRow(shape, **{**times, **known, **changes})


def result(variant: str, *rows: LatencyRow, **changes: Any) -> Result:
    """A variant of model m with these rows; `lost` are the points of accuracy at the low end."""
    lost, mb = changes.pop("lost", 0.2), changes.pop("mb", 1000)
    change: Any = {"delta": -0.001, "delta_low": -lost / 100, "delta_high": 0.0}
    verdict: Any = "kept" if lost <= 1.0 else "undecided"
    own = {"build_s": 60.0, "peak_rss_bytes": int(1e6 * mb)}
    own["accuracy"] = Accuracy(0.9, 0.88, 0.92, 1500, verdict=verdict, **change)
    return results.result(variant, *rows, **{**own, **changes})


def failed(variant: str) -> Result:
    return result(variant, status="failed", reason="too slow")


def raced(timed: list[Result], **milliseconds: float) -> list[Recommendation]:
    """The recommendations of a race of these at SHAPE, by their milliseconds per call."""
    names = {"base": BASELINE, "bf16": BF16, "int8": INT8, "small": SMALL}
    seconds = {names[word]: 0.001 * one for word, one in milliseconds.items()}
    shape = decided_shape(seconds, 40)
    sizes = {("m", one.variant): one.size_bytes or 0 for one in timed}
    races = race_entries([race_record([shape])], sizes, accept_disturbed=False)
    return recommendations(timed, races)


def decided(
    wanted: Goal,
    timed: list[Result],
    recommended: list[Recommendation] | None = None,
    traffic: list[Any] | None = None,
    prices: dict[str, float] | None = None,
) -> list[GoalDecision]:
    """The decisions for a goal."""
    found = recommended or recommendations(timed, {})
    return decisions(wanted, timed, found, traffic or [], prices=prices or {}, budget_points=1.0)


def reasons(decision: GoalDecision | Recommendation) -> dict[str, str]:
    return {one.variant: said(one.reason) for one in decision.rejected}
