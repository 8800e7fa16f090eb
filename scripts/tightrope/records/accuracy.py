"""Record of accuracy, and the paired change between two of them."""

import hashlib
import io
from functools import cached_property
from itertools import starmap
from operator import eq, gt, lt
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tightrope.artifacts.files import read_bytes, write_bytes
from tightrope.errors import ArtifactError
from tightrope.logit_distance import relative_error
from tightrope.machine.host import numerics_fingerprint
from tightrope.records.record import Record
from tightrope.statistics import (
    AccuracyVerdict,
    accuracy_verdict,
    detectable_drop,
    mcnemar_p_value,
    paired_difference,
    samples_to_keep,
)
from tightrope.variants import parse

Logits = np.ndarray[Any, np.dtype[np.float32]]
# the ends of the names of a record and of its logits
RECORD, LOGITS = "accuracy.json", "logits.npy"
# Largest logit error of an engine in float that computes the same model: 8 times the unit roundoff
# of the format (2^-11 for fp16 and tf32, 2^-8 for bf16); for fp32, where orders of summation and
# approximations of functions differ, the tolerance of tests/engines/test_parity.py.
ROUNDING = {"fp32": 1e-4, "tf32": 2**-8, "fp16": 2**-8, "bf16": 2**-5}


class AccuracyRecord(Record, kw_only=True, dict=True):
    """Every prediction on the evaluation split, in its order; for a slow engine the first ones.

    `margins` are the highest logit minus the second highest. Without labels in the data, `labels`
    is None and nothing is predicted. `data_sha256` is that of the manifest of the split,
    `logits_sha256` that of the file of the logits. `truncation` has the number of its `texts`,
    and how many of them were `truncated` at `max_sequence` tokens; None for images, and where
    nothing was predicted. `collapsed` has the `reason` why predictions are useless, and its
    evidence in `tensors`, see `int8.quantization_noise`; None where they are not.

    `right` is computed once: predictions and labels do not change.

    The attribute `logits`, float32 [examples, classes], is no field: it is written and read with
    the record, as `.logits.npy` in the place of `.accuracy.json`.
    """

    data_sha256: str | None = None
    truncation: dict[str, int] | None = None
    labels: list[int] | None = None
    predictions: list[int] = []
    margins: list[float] = []
    logits_sha256: str | None = None
    collapsed: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Begin without logits."""
        self.logits: Logits = np.zeros((0, 0), np.float32)

    @cached_property
    def right(self) -> list[bool]:
        """For each prediction whether it equals the label."""
        return [*starmap(eq, zip(self.predictions, self.labels or (), strict=True))]

    def write(self, path: Path | str) -> None:
        """Write the logits, then the record, which has their digest."""
        content = io.BytesIO()
        np.save(content, np.asarray(self.logits, "<f4"), allow_pickle=False)
        self.logits_sha256 = hashlib.sha256(content.getvalue()).hexdigest()
        write_bytes(logits_file(path), content.getvalue())
        super().write(path)

    def read_beside(self, path: Path | str) -> None:
        """Read the logits; raise ArtifactError unless they are those of this record."""
        file = logits_file(path)
        content = read_bytes(file)
        if hashlib.sha256(content).hexdigest() != self.logits_sha256:
            raise ArtifactError(f"{file}: not the logits of {path}; delete both and run again")
        logits = np.load(io.BytesIO(content), allow_pickle=False)
        if logits.dtype != np.float32 or logits.shape[:-1] != (len(self.predictions),):
            raise ArtifactError(f"{file}: no row of logits per prediction; delete it and run again")
        self.logits = logits


def logits_file(path: Path | str) -> Path:
    """Return where the logits of an accuracy record are."""
    path = Path(path)
    return path.with_name(f"{path.name.removesuffix(RECORD)}{LOGITS}")


class Change(Struct, frozen=True):
    """Change of accuracy on the same examples, as fractions of them, with its tests."""

    delta: float
    delta_low: float
    delta_high: float
    """With its paired 95 % interval."""
    gained: int
    lost: int
    """Examples that became right, and wrong."""
    p_value: float
    """McNemar's exact test, two-sided."""
    detectable: float
    """The smallest drop that so many examples detect with power 0.8 at a two-sided level of 0.05,
    given as many changes between right and wrong."""
    large_enough: bool
    """Whether `detectable` is within the accuracy budget."""
    verdict: AccuracyVerdict
    """Whether the change is within the budget: `kept`, `dropped` or `undecided`."""
    samples_needed: int | None
    """If the verdict is `undecided`, about how many examples would show that the accuracy is kept,
    with the same shares of changes; None if it is decided or the drop is too large."""


def change(right: list[bool], baseline_right: list[bool], budget: float) -> Change:
    """Return the change of accuracy with its tests, and the drop that these examples can detect."""
    # a slow engine is evaluated on the first examples only
    count = min(len(right), len(baseline_right))
    gained, lost = (sum(map(by, right, baseline_right)) for by in (gt, lt))
    difference = paired_difference(gained, lost, count)
    detectable = detectable_drop(gained + lost, count)
    verdict = accuracy_verdict(difference, budget)
    undecided = verdict == "undecided"
    return Change(
        delta=difference.value,
        delta_low=difference.low,
        delta_high=difference.high,
        gained=gained,
        lost=lost,
        p_value=mcnemar_p_value(gained, lost),
        detectable=detectable,
        large_enough=detectable <= budget,
        verdict=verdict,
        samples_needed=samples_to_keep(gained, lost, count, budget) if undecided else None,
    )


def judged(
    record: AccuracyRecord, baseline: AccuracyRecord | None, budget: float
) -> tuple[AccuracyVerdict | None, Change | None]:
    """Return the verdict on the accuracy of `record` against the baseline's, and its change.

    Both are None without predictions or labels. The baseline itself has kept it without a change;
    without a baseline on the same examples and numerics it is undecided.
    """
    if not record.predictions or record.labels is None:
        return None, None
    if baseline is None or not comparable(record, baseline):
        return "undecided", None
    if (record.model, record.variant) == (baseline.model, baseline.variant):
        return "kept", None
    found = compared(record, baseline, budget)
    return found.verdict, found


def compared(record: AccuracyRecord, baseline: AccuracyRecord, budget: float) -> Change:
    """Return the change of accuracy of `record` against the baseline's.

    An engine in float with the same predictions, and the same logits up to rounding, has kept its
    accuracy however few the examples are.
    """
    found = change(record.right, baseline.right, budget)
    if found.verdict == "undecided" and equal_up_to_rounding(record, baseline):
        return replace(found, verdict="kept", samples_needed=None)
    return found


def equal_up_to_rounding(record: AccuracyRecord, baseline: AccuracyRecord) -> bool:
    """Return whether an engine in float has the baseline's predictions, and logits to rounding.

    It has not where the logits of the baseline are not at hand, as of one that is quantized.
    """
    tolerance = ROUNDING.get(parse(record.variant).precision)
    count = min(len(record.predictions), len(baseline.predictions))
    if tolerance is None or len(baseline.logits) < count:
        return False
    if record.predictions[:count] != baseline.predictions[:count]:
        return False
    error = relative_error(record.logits[:count].tolist(), baseline.logits[:count].tolist())
    return error is not None and error <= tolerance


def comparable(record: AccuracyRecord, baseline: AccuracyRecord) -> bool:
    """Return whether both used the same examples, on machines with the same numerics."""
    places = {numerics_fingerprint(one.host) for one in (record, baseline)}
    same_examples = baseline.data_sha256 == record.data_sha256
    return bool(baseline.predictions) and same_examples and len(places) == 1
