"""Accuracy of a variant, its paired change against the baseline, and what limits both."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, count
from operator import ne
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from msgspec.structs import asdict

from tightrope.artifacts.content import read_artifact
from tightrope.artifacts.failures import failure_of
from tightrope.artifacts.files import require_type
from tightrope.decide.result import Accuracy, Entry, FlippedExample, Search, TopOne, Trial
from tightrope.records.accuracy import AccuracyRecord, Change, Logits, comparable, compared, judged
from tightrope.statistics import share

Array = np.ndarray[Any, np.dtype[np.float64]]
# of the baseline, by definition
UNCHANGED: dict[str, Any] = {
    **dict.fromkeys(("delta", "delta_low", "delta_high", "gained", "lost", "detectable"), 0),
    **{"p_value": 1.0, "large_enough": True, "verdict": "kept"},
    **{"flips": 0, "agreement": 1.0, "logit_error": 0, "kl": 0, "flipped": []},
}
MOST = 200
LONGEST = 300
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
Kind = TypeVar("Kind", bound=Entry)
# records by (model, file stem)
Records = Mapping[tuple[str, str], dict[str, Any]]


class FamilyAccuracy(Entry):
    """The paired change of accuracy."""

    change: Change | None = None
    flips: int | None = None
    """None where there is no change; `flips` are predictions that differ."""
    reason: str | None = None
    """Why there is none, such as other examples."""


class OperatorSensitivity(Entry):
    """An operator in int8 while all others are in float."""

    operator: str
    """Its name."""
    agreement: float
    logit_error: float | None
    kl: float
    """As in [Accuracy](#accuracy), but from the model in float."""
    sqnr_db: float | None
    """Signal to quantization noise of the operator's own output."""


class Sensitivity(Entry):
    """How sensitive the logits are to quantizing each operator alone."""

    samples: int
    """Calibration examples used, the first of the pool."""
    operators: list[OperatorSensitivity]
    """The highest `kl` first."""


class ReferenceLogits:
    """The logits of a baseline, [examples, classes], with what each comparison needs of them.

    Arrays are float64 [classes, examples]: classes are few, and NumPy is fast along long axes. The
    numbers are those of `logit_distance` but for rounding: NumPy computes whole arrays, and its
    last bits may differ from one kind of processor to another.
    """

    def __init__(self, logits: Logits) -> None:
        self.scales: dict[int, float | None] = {}
        self.array = by_class(logits)
        below = self.array - self.array.max(axis=0, initial=-np.inf)
        # exactly 0 where all are equal; a baseline that has failed has no classes
        self.centred = below - below.sum(axis=0) / max(1, len(below))
        self.logarithms = log_softmax(self.array)
        self.shares = np.exp(self.logarithms)

    def distance(self, logits: Logits, count: int) -> tuple[float | None, float]:
        """Return the distance of the first `count` of these logits of a variant.

        The error as of `relative_error`, and the divergence as of `mean_divergence`, in nats.
        Raises ValueError where they are of other classes than the baseline's.
        """
        own, theirs = by_class(logits[:count]), self.array[:, :count]
        if own.shape != theirs.shape:
            raise ValueError(f"logits of shape {own.shape[::-1]}, not {theirs.shape[::-1]}")
        scale = self.scale(count)
        terms = self.shares[:, :count] * (self.logarithms[:, :count] - log_softmax(own))
        relative = None if scale is None else root_mean_square(own - theirs) / scale
        return relative, max(0.0, float(terms.sum(axis=0).mean()))

    def scale(self, count: int) -> float | None:
        """Return the root mean square of the first `count` rows about their means, None for 0."""
        if count not in self.scales:
            self.scales[count] = root_mean_square(self.centred[:, :count]) or None
        return self.scales[count]


def by_class(logits: Logits) -> Array:
    """Return logits [examples, classes] as float64 [classes, examples]."""
    return np.ascontiguousarray(logits.T, np.float64)


def log_softmax(logits: Array) -> Array:
    """Return `logit_distance.log_softmax` of each column."""
    highest = logits.max(axis=0, initial=-np.inf)
    below = logits - highest
    found: Array = below - np.log(np.exp(below).sum(axis=0))
    return found


def root_mean_square(values: Array) -> float:
    """Return the root mean square of all values."""
    return float(np.sqrt(np.square(values).mean()))


class Split(NamedTuple):
    """Evaluation split: file SHA-256, text or image name (or None) per example, class names."""

    sha256: str
    texts: Sequence[str | None]
    labels: Sequence[str] | None


def accuracy_entry(
    record: AccuracyRecord,
    baseline: AccuracyRecord | None,
    budget: float,
    split: Split,
    logits: ReferenceLogits | None = None,
) -> Accuracy | None:
    """Return the accuracy of `record` and its change against the baseline on the same examples.

    The examples are those of `split`; `logits` are the baseline's, which its variants share.
    Returns None without predictions or labels. Without comparable baseline predictions the change
    is None and the verdict `undecided`.
    """
    verdict, found = judged(record, baseline, budget)
    if verdict is None:
        return None
    right = asdict(top_one(record.right))
    if baseline is None or found is None:
        return Accuracy(**right, **(UNCHANGED if verdict == "kept" else {"verdict": verdict}))
    count = min(len(record.predictions), len(baseline.predictions))
    flips = sum(map(ne, record.predictions, baseline.predictions))
    reference = logits or ReferenceLogits(baseline.logits)
    error, divergence = reference.distance(record.logits, count)
    return Accuracy(
        **right,
        **asdict(found),
        flips=flips,
        agreement=1 - flips / count,
        logit_error=error,
        kl=divergence,
        flipped=flipped(record, baseline, split),
    )


def accuracy_between(
    record: AccuracyRecord | None, reference: AccuracyRecord | None, budget: float
) -> FamilyAccuracy | None:
    """Return the change of accuracy from a reference, which may be of another model.

    None without predictions or labels.
    """
    if record is None or not record.predictions or record.labels is None:
        return None
    if reference is None or not reference.predictions or reference.labels is None:
        return FamilyAccuracy(reason="the other one has no accuracy")
    if reference.data_sha256 != record.data_sha256:
        return FamilyAccuracy(reason="evaluated on other examples")
    if not comparable(record, reference):
        return FamilyAccuracy(reason="evaluated on a machine with other numerics")
    flips = sum(map(ne, record.predictions, reference.predictions))
    return FamilyAccuracy(compared(record, reference, budget), flips)


def top_one(right: Sequence[bool]) -> TopOne:
    """Return the share of right predictions."""
    return TopOne(*share(sum(right), len(right)), samples=len(right))


def flipped(record: AccuracyRecord, baseline: AccuracyRecord, split: Split) -> list[FlippedExample]:
    """Return examples whose prediction differs from the baseline's, highest baseline margin first.

    At most MOST. `text` is cut at LONGEST characters; it is None if the source has no text or the
    record was made on another split. Classes are names if the data have any, else indices.
    """
    found = list(compress(count(), map(ne, record.predictions, baseline.predictions)))
    found.sort(key=lambda index: (-baseline.margins[index], index))
    labels = record.labels or ()
    same = split.sha256 == record.data_sha256
    return [
        FlippedExample(
            index=index,
            text=shortened(split.texts[index]) if same else None,
            label=class_name(labels[index], split.labels),
            baseline=class_name(baseline.predictions[index], split.labels),
            prediction=class_name(record.predictions[index], split.labels),
            baseline_margin=baseline.margins[index],
            margin=record.margins[index],
        )
        for index in found[:MOST]
    ]


def shortened(text: str | None) -> str | None:
    """Cut `text` to LONGEST characters, with an ellipsis at the end if it was longer."""
    if text is None or len(text) <= LONGEST:
        return text
    return text[: LONGEST - 1].rstrip() + ELLIPSIS


def class_name(index: int, labels: Sequence[str] | None) -> str | int:
    """Return the class name, or the class index if the data have no name for it."""
    return labels[index] if labels is not None and index < len(labels) else index


def made_records(paths: Iterable[Path | str], kind: Any) -> Records:
    """Read files `artifacts/{model}/{kind}/{name}.json` by model and name, without failures."""
    found = {path: read_artifact(path) for path in paths}
    made = {path: one for path, one in found.items() if failure_of(one) is None}
    for path, one in made.items():
        require_type(path, one, kind)
    return {(Path(path).parents[1].name, Path(path).stem): one for path, one in made.items()}


def search_entry(record: Mapping[str, Any]) -> Search:
    """Return `search` of an int8-auto result; a trial has the number of operators left in float."""
    trials = [entry_of(Trial, one, in_float=len(one["in_float"])) for one in record["trials"]]
    return entry_of(Search, record, trials=trials)


def entry_of(kind: type[Kind], source: Mapping[str, Any], **others: Any) -> Kind:
    """Return an entry with the fields `others`, and all that remain from a mapping."""
    names = (name for name in kind.__struct_fields__ if name not in others)
    return kind(**{name: source[name] for name in names}, **others)


def sensitivity_entries(model: str, searches: Records) -> dict[str, Sensitivity]:
    """Return a model's operator sensitivities by scheme and calibration, highest KL first.

    `searches` that needed none are left out.
    """
    found = {}
    for (owner, name), record in searches.items():
        if owner == model and (measured := record["sensitivity"]):
            operators = [
                entry_of(OperatorSensitivity, fields, operator=operator)
                for operator, fields in measured["operators"].items()
            ]
            operators.sort(key=lambda operator: -operator.kl)
            found[name] = Sensitivity(measured["samples"], operators)
    return found
