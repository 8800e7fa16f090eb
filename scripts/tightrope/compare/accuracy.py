"""Which variants lost or gained accuracy, in pairs of answers where these are known."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from tightrope.artifacts.content import checked
from tightrope.artifacts.files import json_document, read_bytes
from tightrope.compare.read import LARGEST_BYTES, Key, Report
from tightrope.compare.speed import p_value, verdicts
from tightrope.decide.result import Accuracy
from tightrope.errors import TightropeError
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.record import SCHEMA
from tightrope.statistics import Interval, Z, mcnemar_p_value, paired_difference, share

# what a name must not have to be part of a file's name
SEPARATORS = ("/", "\\", "\0")
# what a change of accuracy comes from
RECORDS, FLIPS = "the accuracy records", "the flips of both summaries"
TOTALS = "the totals alone"
Class = str | int


class Flip(NamedTuple):
    """An example, by its number, answered otherwise; `text` is None where no summary quotes it."""

    example: int
    text: str | None
    label: Class
    old: Class
    new: Class


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
    source: str | None = None
    delta: Interval | None = None
    flips: list[Flip] | None = None
    p: float = 1.0
    verdict: str = "not judged"
    reason: str | None = None
    why_totals: str | None = None


def accuracy_changes(
    old: Report, new: Report, keys: Collection[Key], unchanged: Collection[Key]
) -> list[AccuracyChange]:
    """Return the change of each variant that was measured in both reports.

    `unchanged` are the variants whose model and data are the same, and whose baseline is: its
    answers are then taken to be so as well.
    """
    found = [accuracy_change(old, new, key, key in unchanged) for key in sorted(keys)]
    known = [(one.p, one.delta.value) for one in found if one.delta]
    judged = iter(verdicts(known, ("worse", "better")))
    return [replace(one, verdict=next(judged)) if one.delta else one for one in found]


def accuracy_change(old: Report, new: Report, key: Key, unchanged: bool) -> AccuracyChange:
    """Return the change of a variant, its p value not yet corrected."""
    before, after = (one.results[key].accuracy for one in (old, new))
    was, now = (one.top1 if one else None for one in (before, after))
    change = AccuracyChange(key, was, now, after.samples if after else None)
    possible = (one and 0 <= one.top1 <= 1 and one.samples > 0 for one in (before, after))
    if not (all(possible) and before and after):
        return replace(change, reason="no accuracy in both")
    both = before, after
    try:
        source, (count, flips) = RECORDS, from_records(old, new, key, both)
    except TightropeError as no_records:
        try:
            source, count, flips = FLIPS, before.samples, from_flips(old, new, key, both, unchanged)
        except TightropeError as no_flips:
            return totals(change, both, f"{no_records}; {no_flips}")
    gained = sum(one.new == one.label for one in flips)
    lost = sum(one.old == one.label for one in flips)
    delta, p = paired_difference(gained, lost, count), mcnemar_p_value(gained, lost)
    return replace(change, source=source, samples=count, delta=delta, flips=flips, p=p)


def from_records(
    old: Report, new: Report, key: Key, accuracies: Sequence[Accuracy]
) -> tuple[int, list[Flip]]:
    """Return the number of common examples and the changed answers, by the records of both.

    Raises TightropeError where a summary has none beside it, or they are of other examples.
    """
    before, after = map(record_of, (old, new), (key, key), accuracies)
    if before.data_sha256 != after.data_sha256 or not before.labels:
        raise TightropeError("their accuracy records are of other examples")
    entry = new.document.models.get(key.model)
    names = (entry and entry.labels) or []

    def named(answer: int) -> Class:
        return names[answer] if 0 <= answer < len(names) else answer

    quoted = [one for accuracy in accuracies for one in accuracy.flipped or ()]
    texts = {one.index: one.text for one in quoted if one.text}
    answers = enumerate(zip(before.labels, before.predictions, after.predictions, strict=False))
    flips = [Flip(index, texts.get(index), *map(named, one)) for index, one in answers]
    count = min(len(before.predictions), len(after.predictions))
    return count, [one for one in flips if one.old != one.new]


def record_of(report: Report, key: Key, accuracy: Accuracy) -> AccuracyRecord:
    """Return the accuracy record beside a summary; raise TightropeError unless it is of it."""
    model, variant = key.model, report.stored_as.get(key, key.variant)
    if any(mark in model + variant for mark in SEPARATORS) or model in (".", ".."):
        raise TightropeError("its name is none of a file")
    path = report.path.parent / model / f"{variant}.accuracy.json"
    if not path.exists():
        raise TightropeError(f"no {path}")
    content = checked(path, read_bytes(path, LARGEST_BYTES), of_any_version=True)
    try:
        record = msgspec.convert(json_document(path, content), AccuracyRecord)
    except msgspec.ValidationError as error:
        raise TightropeError(f"{path}: {error}") from error
    labels, count = record.labels or [], len(record.predictions)
    right = sum(ours == label for ours, label in zip(record.predictions, labels, strict=False))
    own = (record.schema, record.model, record.variant) == (SCHEMA, model, variant)
    fits = own and count == accuracy.samples and len(labels) >= count
    if not (fits and math.isclose(right / count, accuracy.top1, abs_tol=1e-9)):
        raise TightropeError(f"{path} is not of this summary")
    return record


def from_flips(
    old: Report, new: Report, key: Key, accuracies: Sequence[Accuracy], unchanged: bool
) -> list[Flip]:
    """Return the changed answers by the flips of both summaries.

    Raises TightropeError where they do not tell.
    """
    before, after = accuracies
    if not unchanged:
        raise TightropeError("model, data or baseline are not the same")
    if before.samples != after.samples:
        raise TightropeError("other numbers of examples")
    if {one.results[key].baseline for one in (old, new)} == {key.variant}:
        if before.top1 != after.top1:
            raise TightropeError("the baseline")
        return []
    lists = [{one.index: one for one in each.flipped or ()} for each in accuracies]
    if [len(one) for one in lists] != [before.flips, after.flips]:
        raise TightropeError("a summary does not list all flips")
    flips = []
    for index, one in sorted((lists[0] | lists[1]).items()):
        # the baseline gives the answers that are not listed
        answers = [ones[index].prediction if index in ones else one.baseline for ones in lists]
        flips.append(Flip(index, one.text, one.label, *answers))
    return [one for one in flips if one.old != one.new]


def totals(change: AccuracyChange, accuracies: Sequence[Accuracy], why: str) -> AccuracyChange:
    """Return the change of two accuracies as of independent samples.

    The interval is method 10 of Newcombe (1998), "Interval estimation for the difference between
    independent proportions", from those of Wilson.
    """
    before, after = (share(round(one.top1 * one.samples), one.samples) for one in accuracies)
    value = after.value - before.value
    below = math.hypot(after.value - after.low, before.high - before.value)
    above = math.hypot(after.high - after.value, before.value - before.low)
    delta = Interval(value, value - below, value + above)
    towards_zero = below if value > 0 else above
    p = p_value(Z * value / towards_zero) if towards_zero else 1.0
    return replace(change, source=TOTALS, delta=delta, p=p, why_totals=why)
