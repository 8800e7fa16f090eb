"""Results of model m by hand: times over a baseline of 10 ms, and what its accuracy came to."""

import math
from typing import Any

from raced import PLACE, SHAPE
from tightrope.statistics import Interval
from tightrope.summary.result_types import ratio_entry
from tightrope.summary.results import NO_SPEEDUP, variant_fields
from tightrope.variants import parse

BASELINE = "cpu-pytorch-fp32"
WHY = "only 2 of 12 pairs of blocks were undisturbed, 7 are needed"
DELTAS = {"kept": -0.002, "undecided": -0.012, "dropped": -0.05}


def between(ratio: float, spread: float = 0.02) -> Interval:
    """A ratio within so much on the log scale."""
    return Interval(*(ratio * math.exp(off) for off in (0, -spread, spread)))


def row(
    ratio: float | None, shape: dict[str, int] = SHAPE, *, spread: float = 0.02, **changes: Any
) -> dict[str, Any]:
    """A latency `ratio` times as fast as the baseline's."""
    seconds = dict.fromkeys(("p50_s", "mean_s", "paired_s"), 0.01 / (ratio or 1.0))
    speedup = ratio and ratio_entry(between(ratio, spread))
    known = {"speedup": speedup, "disturbed": None, "provisional": False}
    return {**shape, **seconds, **known, **changes}


def lost(**changes: Any) -> dict[str, Any]:
    """A row that other load disturbed."""
    unknown = dict.fromkeys(("p50_s", "mean_s", "paired_s"))
    return row(None, **{**unknown, "speedup": NO_SPEEDUP, "disturbed": WHY, **changes})


def result(
    variant: str, *rows: dict[str, Any], verdict: str | None = "kept", **changes: Any
) -> dict[str, Any]:
    """What the summary has of a variant with these rows."""
    delta = DELTAS.get(verdict or "", 0.0)
    accuracy = verdict and {
        **{"top1": 0.9 + delta, "samples": 1500, "flips": 30, "verdict": verdict},
        **{"delta": delta, "delta_low": delta - 0.006, "delta_high": delta + 0.006},
        "samples_needed": None,
    }
    return {
        **{"model": "m", "variant": variant, "baseline": BASELINE, "host": PLACE},
        **variant_fields(parse(variant)),
        **{"status": "ok", "reason": None, "size_bytes": 100},
        **{"accuracy": accuracy, "latency": list(rows)},
        **changes,
    }


def failed(variant: str, reason: str, **changes: Any) -> dict[str, Any]:
    return result(variant, **{"status": "failed", "reason": reason, "verdict": None, **changes})
