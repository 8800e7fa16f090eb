"""What to do with a cascade, as a verdict and a sentence."""

import math
from collections.abc import Sequence
from typing import Any

from tightrope.statistics import LEVEL
from tightrope.summary.cascade_types import Cascade, Verdict
from tightrope.summary.ratios import interval_of


def verdict_and_sentence(entry: Cascade, tests: Sequence[dict[str, Any]]) -> tuple[Verdict, str]:
    """Return the verdict on a cascade and one sentence; `tests` are those of its thresholds."""
    large, small = entry["model"], entry["small_model"]
    if entry["status"] == "failed":
        return "failed", f"It was not measured: {entry['reason']}."
    if entry["threshold"] is None:
        return "large alone", f"Use {large} alone: {no_threshold(entry, tests)}."
    promise = promise_of(entry)
    if entry["kept"] == "dropped":
        return "accuracy dropped", f"Use {large} alone: the cascade does not keep {promise}."
    # the cascade asks the small model first, so that it is never faster than that one alone
    if entry["threshold"] == 0 or entry["share"] == 1 or entry["small_kept"] == "kept":
        sure = "keeps" if "kept" in (entry["kept"], entry["small_kept"]) else "may keep"
        return "small alone", f"No cascade is needed: {small} alone {sure} {promise}."
    speed = interval_of(entry["over_large"])
    if speed is None:
        return "disturbed", "Other load left no measurement of its speed."
    much = (
        f"{speed.value:.2f} times as many samples per second ({speed.low:.2f} to {speed.high:.2f})"
    )
    part = f"{small} answers {100 * (entry['share'] or 0):.0f} % of the samples"
    if speed.low <= 1:
        return (
            "no faster",
            f"Use {large} alone: {part}, and nothing shows that the cascade is faster ({much}).",
        )
    if entry["kept"] == "kept":
        return "use it", f"Use it: {part}, {much} as {large} alone, and it keeps {promise}."
    return (
        "accuracy undecided",
        f"Evaluate more samples: {part}, {much} as {large} alone, but these samples cannot show "
        f"that it keeps {promise}.",
    )


def promise_of(entry: Cascade) -> str:
    """Return what the threshold was chosen for."""
    if entry["agreement"] is None:
        points = entry["budget_points"]
        return f"the accuracy within {points:g} point{'' if points == 1 else 's'}"
    return f"{100 * entry['agreement']:g} % of the answers"


def no_threshold(entry: Cascade, tests: Sequence[dict[str, Any]]) -> str:
    """Return why no threshold passed: too few samples, or a small model that is wrong when sure."""
    bound = entry["budget_points"] / 100 if entry["agreement"] is None else 1 - entry["agreement"]
    first = tests[0]
    if not first["lost"] and not first["gained"]:
        fewest = math.ceil(math.log(LEVEL) / math.log1p(-bound))
        return (
            "the calibration split is too small to prove that any threshold keeps "
            f"{promise_of(entry)} (calibration.pool of at least {fewest + 1 + fewest // 50})"
        )
    return (
        f"{entry['small_model']} changes too many answers even where it is surest "
        f"({first['lost']} lost, {first['gained']} gained), to keep {promise_of(entry)}"
    )
