"""Which answers of a variant changed, from accuracy records or from the flips of two summaries."""

import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from tightrope.artifacts.content import checked
from tightrope.artifacts.files import json_document, read_bytes
from tightrope.compare.read import LARGEST_BYTES, Entry, Key, Report
from tightrope.errors import ArtifactError
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.record import SCHEMA

Source = Literal["records", "flips", "totals"]
Class = str | int
# what a name must not have to be part of a file's name
SEPARATORS = ("/", "\\", "\0")


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
    if any(mark in name for name in key for mark in SEPARATORS) or key.model in (".", ".."):
        return "its name is none of a file"
    path = report.path.parent / key.model / f"{key.variant}.accuracy.json"
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
    if record.schema != SCHEMA or (record.model, record.variant) != key or not fits:
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
