"""Results of model m by hand: times over a baseline of 10 ms, and what its accuracy came to."""

import math
from typing import Any

from msgspec.structs import replace
from raced import PLACE, SHAPE
from tightrope.decide.result import NO_SPEEDUP, Accuracy, LatencyRow, Ratio, Result, Shape
from tightrope.statistics import AccuracyVerdict, Interval
from tightrope.summary.results import parts_of

BASELINE = "cpu-pytorch-fp32"
WHY = "only 2 of 12 pairs of blocks were undisturbed, 7 are needed"
DELTAS = {"kept": -0.002, "undecided": -0.012, "dropped": -0.05}


def between(ratio: float, spread: float = 0.02) -> Interval:
    """A ratio within so much on the log scale."""
    return Interval(*(ratio * math.exp(off) for off in (0, -spread, spread)))


def row(
    ratio: float | None, shape: Shape = SHAPE, *, spread: float = 0.02, **changes: Any
) -> LatencyRow:
    """A latency `ratio` times as fast as the baseline's."""
    seconds: Any = dict.fromkeys(("p50_s", "mean_s", "paired_s"), 0.01 / (ratio or 1.0))
    speedup = Ratio.of(between(ratio, spread)) if ratio else None
    return replace(LatencyRow(shape, speedup=speedup, **seconds), **changes)


def lost(**changes: Any) -> LatencyRow:
    """A row that other load disturbed."""
    unknown = dict.fromkeys(("p50_s", "mean_s", "paired_s"))
    return row(None, **{**unknown, "speedup": NO_SPEEDUP, "disturbed": WHY, **changes})


def result(
    variant: str, *rows: LatencyRow, verdict: AccuracyVerdict | None = "kept", **changes: Any
) -> Result:
    """What the summary has of a variant with these rows."""
    delta = DELTAS.get(verdict or "", 0.0)
    low, high = delta - 0.006, delta + 0.006
    change: Any = {"delta": delta, "delta_low": low, "delta_high": high, "flips": 30}
    accuracy = verdict and Accuracy(0.9 + delta, 0.88, 0.92, 1500, verdict=verdict, **change)
    parts = parts_of(variant)
    known = Result("m", **parts, baseline=BASELINE, host=PLACE, status="ok", size_bytes=100)
    return replace(known, **{"accuracy": accuracy, "latency": list(rows), **changes})


def failed(variant: str, reason: str, **changes: Any) -> Result:
    return result(variant, **{"status": "failed", "reason": reason, "verdict": None, **changes})
