"""Which variants lost or gained accuracy, in pairs of answers where these are known."""

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Literal

from tightrope.compare.answers import Answers, Flip, Source, from_flips, from_records
from tightrope.compare.noise import adjusted, is_beyond, p_value
from tightrope.compare.read import Entry, Key, Report
from tightrope.statistics import Interval, Z, mcnemar_p_value, paired_difference, share

Verdict = Literal["worse", "better", "same", "not judged"]


@dataclass(frozen=True)
class AccuracyChange:
    """The accuracy of a variant in the new report less that in the old one, a fraction.

    `delta` has its 95 % interval; None with the `reason` where there is none. `source` says what it
    comes from; `flips` are all changed answers, None for totals, with `why_totals`.
    """

    key: Key
    old: float | None = None
    new: float | None = None
    samples: int | None = None
    source: Source | None = None
    delta: Interval | None = None
    flips: list[Flip] | None = field(default=None)
    p: float | None = None
    verdict: Verdict = "not judged"
    reason: str | None = None
    why_totals: str | None = None


def accuracy_changes(
    old: Report, new: Report, keys: Collection[Key], unchanged: Collection[Key]
) -> list[AccuracyChange]:
    """Return the change of each variant that was measured in both reports.

    `unchanged` are the variants whose model and data are the same, and whose baseline is.
    """
    found = [accuracy_change(old, new, key, unchanged=key in unchanged) for key in sorted(keys)]
    known = [one for one in found if one.p is not None]
    ps = dict(
        zip([one.key for one in known], adjusted([one.p or 0.0 for one in known]), strict=True)
    )
    return [with_verdict(one, ps[one.key]) if one.key in ps else one for one in found]


def accuracy_change(old: Report, new: Report, key: Key, *, unchanged: bool) -> AccuracyChange:
    """Return the change of a variant, its p value not yet corrected."""
    entries = [one.results[key].get("accuracy") or {} for one in (old, new)]
    tops = [entry.get("top1") for entry in entries]
    change = AccuracyChange(key, old=tops[0], new=tops[1], samples=entries[1].get("samples"))
    if not all(is_share(entry) for entry in entries):
        return replace(change, reason="no accuracy in both")
    found = from_records(old, new, key)
    if isinstance(found, Answers):
        return paired(change, found)
    otherwise = from_flips(old, new, key, unchanged=unchanged)
    if isinstance(otherwise, Answers):
        return paired(change, otherwise)
    return totals(change, entries, f"{found}; {otherwise}")


def is_share(entry: Entry) -> bool:
    """Return whether an accuracy has what totals need: a share of a number of samples."""
    return 0 <= entry.get("top1", -1.0) <= 1 and entry.get("samples", 0) > 0


def paired(change: AccuracyChange, answers: Answers) -> AccuracyChange:
    """Return the change by answers to the same examples."""
    gained, lost, count = answers.gained, answers.lost, answers.samples
    return replace(
        change,
        source=answers.source,
        samples=count,
        delta=paired_difference(gained, lost, count),
        flips=answers.flips,
        p=mcnemar_p_value(gained, lost),
    )


def totals(change: AccuracyChange, entries: list[Entry], why: str) -> AccuracyChange:
    """Return the change of two accuracies as of independent samples.

    The interval is method 10 of Newcombe (1998), "Interval estimation for the difference between
    independent proportions", from those of Wilson.
    """
    before, after = (share(round(one["top1"] * one["samples"]), one["samples"]) for one in entries)
    value = after.value - before.value
    below = math.hypot(after.value - after.low, before.high - before.value)
    above = math.hypot(after.high - after.value, before.value - before.low)
    delta = Interval(value, value - below, value + above)
    towards_zero = below if value > 0 else above
    return replace(
        change,
        source="totals",
        delta=delta,
        p=p_value(Z * value / towards_zero) if towards_zero else 1.0,
        why_totals=why,
    )


def with_verdict(change: AccuracyChange, p: float) -> AccuracyChange:
    """Return the change with its corrected p value and its verdict."""
    assert change.delta
    verdict: Verdict = "worse" if change.delta.value < 0 else "better"
    return replace(change, p=p, verdict=verdict if is_beyond(p) else "same")
