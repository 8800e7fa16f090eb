"""Which variants lost or gained accuracy, in pairs of answers where these are known."""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import msgspec

from tightrope.artifacts.content import checked
from tightrope.artifacts.files import json_document, read_bytes
from tightrope.compare.noise import adjusted, is_beyond, p_value
from tightrope.compare.read import LARGEST_BYTES, Entry, Key, Report
from tightrope.errors import ArtifactError
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.record import SCHEMA
from tightrope.statistics import Interval, Z, mcnemar_p_value, paired_difference, share

Source = Literal["records", "flips", "totals"]
Class = str | int
# what a name must not have to be part of a file's name
SEPARATORS = ("/", "\\", "\0")
Verdict = Literal["worse", "better", "same", "not judged"]


class Flip(NamedTuple):
    """An example, by its number, answered otherwise; `text` is None where no summary quotes it."""

    example: int
    text: str | None
    label: Class
    old: Class
    new: Class


class Answers(NamedTuple):
    """The changed answers on `samples` common examples."""

    source: Source
    samples: int
    flips: list[Flip]

    @property
    def gained(self) -> int:
        """How many examples became right."""
        return sum(one.new == one.label for one in self.flips)

    @property
    def lost(self) -> int:
        """How many examples became wrong."""
        return sum(one.old == one.label for one in self.flips)


def from_records(old: Report, new: Report, key: Key) -> Answers | str:
    """Return the changed answers by the records beside both summaries, or why there are none."""
    records = []
    for report in (old, new):
        record = record_of(report, key)
        if isinstance(record, str):
            return record
        records.append(record)
    before, after = records
    if before.data_sha256 != after.data_sha256 or not before.labels:
        return "their accuracy records are of other examples"
    labels = new.model(key.model).get("labels")
    texts = dict(texts_of(old, key)) | dict(texts_of(new, key))
    answers = zip(before.labels, before.predictions, after.predictions, strict=False)
    count = min(len(before.predictions), len(after.predictions))
    flips = [
        Flip(index, texts.get(index), *(named(one, labels) for one in (label, was, now)))
        for index, (label, was, now) in enumerate(answers)
        if was != now
    ]
    return Answers("records", count, flips)


def record_of(report: Report, key: Key) -> AccuracyRecord | str:
    """Return the accuracy record beside a summary if it is the one of its result, or why not."""
    variant = report.results[key].get("stored_as") or key.variant
    names = key.model, variant
    if any(mark in name for name in names for mark in SEPARATORS) or key.model in (".", ".."):
        return "its name is none of a file"
    path = report.path.parent / key.model / f"{variant}.accuracy.json"
    if not path.exists():
        return f"no {path}"
    try:
        content = checked(path, read_bytes(path, LARGEST_BYTES), of_any_version=True)
        document = json_document(path, content)
        record = msgspec.convert(document, AccuracyRecord)
    except (ArtifactError, msgspec.ValidationError) as error:
        return str(error) if isinstance(error, ArtifactError) else f"{path}: {error}"
    accuracy = report.results[key].get("accuracy") or {}
    labels, count = record.labels or [], len(record.predictions)
    right = sum(ours == label for ours, label in zip(record.predictions, labels, strict=False))
    fits = count == accuracy.get("samples") and len(labels) >= count > 0
    if record.schema != SCHEMA or (record.model, record.variant) != names or not fits:
        return f"{path} is not of this summary"
    same = math.isclose(right / count, accuracy.get("top1", -1.0), abs_tol=1e-9)
    return record if same else f"{path} is not of this summary"


def named(answer: int, labels: list[str] | None) -> Class:
    """Return the name of a class, its number where there is none."""
    return labels[answer] if labels and 0 <= answer < len(labels) else answer


def texts_of(report: Report, key: Key) -> Iterator[tuple[int, str]]:
    """Yield index and text of the examples that a result quotes."""
    for one in flipped(report, key):
        if one.get("text"):
            yield one["index"], one["text"]


def flipped(report: Report, key: Key) -> list[dict[str, Any]]:
    """Return the examples that a variant answers otherwise than its baseline, as far as listed."""
    accuracy = report.results[key].get("accuracy") or {}
    return accuracy.get("flipped") or []


def from_flips(old: Report, new: Report, key: Key, *, unchanged: bool) -> Answers | str:
    """Return the changed answers by the flips of both summaries, or why they do not tell.

    `unchanged` is whether model, data and baseline are the same, whose answers are then taken to be
    so as well.
    """
    if not unchanged:
        return "model, data or baseline are not the same"
    results = [one.results[key] for one in (old, new)]
    accuracies: list[Entry] = [one.get("accuracy") or {} for one in results]
    if accuracies[0].get("samples") != accuracies[1].get("samples"):
        return "other numbers of examples"
    is_baseline = results[0].get("baseline") == key.variant == results[1].get("baseline")
    if is_baseline:
        same = accuracies[0].get("top1") == accuracies[1].get("top1")
        return Answers("flips", accuracies[0].get("samples", 0), []) if same else "the baseline"
    lists = []
    for report, accuracy in zip((old, new), accuracies, strict=True):
        examples = {one["index"]: one for one in flipped(report, key) if whole(one)}
        if accuracy.get("flips") is None or len(examples) != accuracy["flips"]:
            return "a summary does not list all flips"
        lists.append(examples)
    return Answers("flips", accuracies[0]["samples"], [*changed(*lists)])


def whole(example: Entry) -> bool:
    """Return whether a listed example has all that is read here."""
    return all(name in example for name in ("index", "label", "baseline", "prediction"))


def changed(old: dict[int, Any], new: dict[int, Any]) -> Iterator[Flip]:
    """Yield the examples whose answers differ; the baseline gives those that are not listed."""
    for index in sorted(old.keys() | new.keys()):
        one = new.get(index) or old[index]
        was = old[index]["prediction"] if index in old else one["baseline"]
        now = new[index]["prediction"] if index in new else one["baseline"]
        if was != now:
            yield Flip(index, one.get("text"), one["label"], was, now)


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
    if not all(0 <= one.get("top1", -1.0) <= 1 and one.get("samples", 0) > 0 for one in entries):
        return replace(change, reason="no accuracy in both")
    found = from_records(old, new, key)
    if isinstance(found, Answers):
        return paired(change, found)
    otherwise = from_flips(old, new, key, unchanged=unchanged)
    if isinstance(otherwise, Answers):
        return paired(change, otherwise)
    return totals(change, entries, f"{found}; {otherwise}")


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
