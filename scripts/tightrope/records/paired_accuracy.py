"""Change of accuracy between two records on the same examples."""

from operator import gt, lt
from typing import TypedDict

from tightrope.logit_distance import relative_error
from tightrope.machine.host import numerics_fingerprint
from tightrope.records.accuracy import AccuracyRecord
from tightrope.statistics import (
    AccuracyVerdict,
    accuracy_verdict,
    detectable_drop,
    mcnemar_p_value,
    paired_difference,
    samples_to_keep,
)
from tightrope.variants import parse

# Largest logit error of an engine in float that computes the same model: 8 times the unit roundoff
# of the format (2^-11 for fp16 and tf32, 2^-8 for bf16); for fp32, where orders of summation and
# approximations of functions differ, the tolerance of tests/engines/test_parity.py.
ROUNDING = {"fp32": 1e-4, "tf32": 2**-8, "fp16": 2**-8, "bf16": 2**-5}


class Change(TypedDict):
    """Change of accuracy on the same examples, as shares of them, with its tests."""

    delta: float
    delta_low: float
    delta_high: float
    gained: int
    lost: int
    p_value: float
    detectable: float
    large_enough: bool
    verdict: AccuracyVerdict
    samples_needed: int | None


def change(right: list[bool], baseline_right: list[bool], budget: float) -> Change:
    """Return the change of accuracy with its tests, and the drop that these examples can detect."""
    # a slow engine is evaluated on the first examples only
    count = min(len(right), len(baseline_right))
    gained, lost = (sum(map(by, right, baseline_right)) for by in (gt, lt))
    difference = paired_difference(gained, lost, count)
    detectable = detectable_drop(gained + lost, count)
    verdict = accuracy_verdict(difference, budget)
    undecided = verdict == "undecided"
    return {
        "delta": difference.value,
        "delta_low": difference.low,
        "delta_high": difference.high,
        "gained": gained,
        "lost": lost,
        "p_value": mcnemar_p_value(gained, lost),
        "detectable": detectable,
        "large_enough": detectable <= budget,
        "verdict": verdict,
        "samples_needed": samples_to_keep(gained, lost, count, budget) if undecided else None,
    }


def compared(record: AccuracyRecord, baseline: AccuracyRecord, budget: float) -> Change:
    """Return the change of accuracy of `record` against the baseline's.

    An engine in float with the same predictions, and the same logits up to rounding, has kept its
    accuracy however few the examples are.
    """
    entry = change(record.right, baseline.right, budget)
    if entry["verdict"] == "undecided" and equal_up_to_rounding(record, baseline):
        return {**entry, "verdict": "kept", "samples_needed": None}
    return entry


def equal_up_to_rounding(record: AccuracyRecord, baseline: AccuracyRecord) -> bool:
    """Return whether an engine in float has the baseline's predictions, and logits to rounding."""
    tolerance = ROUNDING.get(parse(record.variant).precision)
    count = min(len(record.predictions), len(baseline.predictions))
    if tolerance is None or record.predictions[:count] != baseline.predictions[:count]:
        return False
    error = relative_error(record.logits[:count].tolist(), baseline.logits[:count].tolist())
    return error is not None and error <= tolerance


def comparable(record: AccuracyRecord, baseline: AccuracyRecord) -> bool:
    """Return whether both used the same examples, on machines with the same numerics."""
    places = {numerics_fingerprint(one.host) for one in (record, baseline)}
    same_examples = baseline.data_sha256 == record.data_sha256
    return bool(baseline.predictions) and same_examples and len(places) == 1
