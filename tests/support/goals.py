"""Results, traffic and goals by hand, of variants whose numbers are planted."""

from typing import Any

import results
from raced import SHAPE, decided_shape, race_record
from tightrope.summary.goal import decisions
from tightrope.summary.races import race_entries
from tightrope.summary.recommend import recommendations

BASELINE, BF16, INT8 = "cpu-pytorch-fp32", "cpu-openvino-bf16", "cpu-onnxruntime-int8-minmax-64"
SMALL = "cpu-onnxruntime-fp32"
BATCH = {"batch": 16, "sequence": 64}
NOT_GIVEN = {"shape": None, "traffic": None, "p99_ms": None, "memory_mb": None}


def goal(minimize: str, **given: Any) -> dict[str, Any]:
    return {"minimize": minimize, **NOT_GIVEN, "accuracy_points": None, **given}


def row(ms: float | None, ratio: float | None = None, **changes: Any) -> dict[str, Any]:
    """A row of `ms` per call, so many times as fast as the baseline, give or take 10 %."""
    ends = ratio and {"ratio": ratio, "low": ratio / 1.1, "high": ratio * 1.1}
    speedup = ends and {**ends, "verdict": "faster"}
    seconds = ms and ms / 1000
    times = {"paired_s": seconds, "p50_s": seconds, "p99_s": seconds and 1.5 * seconds}
    known = {"disturbed": None, "provisional": False, "energy_j": None, "streams": None}
    known |= {"samples": 1000, "stop": "minimum"}
    return {**SHAPE, **times, "speedup": speedup, **known, **changes}


def result(variant: str, *rows: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A variant of model m with these rows; `lost` are the points of accuracy at the low end."""
    lost, mb = changes.pop("lost", 0.2), changes.pop("mb", 1000)
    accuracy = {"delta": -0.001, "delta_low": -lost / 100, "delta_high": 0.0}
    verdict = "kept" if lost <= 1.0 else "undecided"
    own = {"build_s": 60.0, "search": None, "peak_rss_bytes": int(1e6 * mb)}
    own["accuracy"] = {"verdict": verdict, **accuracy, "samples_needed": None}
    return results.result(variant, *rows, **{**own, **changes})


def failed(variant: str) -> dict[str, Any]:
    return result(variant, status="failed", reason="too slow")


def raced(timed: list[dict[str, Any]], **milliseconds: float) -> list[dict[str, Any]]:
    """The recommendations of a race of these at SHAPE, by their milliseconds per call."""
    names = {"base": BASELINE, "bf16": BF16, "int8": INT8, "small": SMALL}
    seconds = {names[word]: 0.001 * one for word, one in milliseconds.items()}
    shape = decided_shape(seconds, 40)
    sizes = {("m", one["variant"]): one["size_bytes"] for one in timed}
    races = race_entries([race_record([shape])], sizes, accept_disturbed=False)
    return recommendations(timed, races)


def decided(
    wanted: dict[str, Any],
    timed: list[dict[str, Any]],
    recommended: list[dict[str, Any]] | None = None,
    traffic: list[dict[str, Any]] | None = None,
    prices: dict[str, float] | None = None,
) -> list[dict[str, Any]]:
    """The decisions for a goal."""
    found = recommended or recommendations(timed, {})
    options = {"prices": prices or {}, "budget_points": 1.0}
    return decisions(wanted, timed, found, traffic or [], **options)


def reasons(decision: dict[str, Any]) -> dict[str, str]:
    return {one["variant"]: one["reason"] for one in decision["rejected"]}
