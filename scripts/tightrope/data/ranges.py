"""Which rows of the examples in data.json each split takes."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from tightrope.data.material import POOL
from tightrope.errors import TightropeError

SPLITS = ("train", "evaluation", "calibration", "timing")
# examples to time and to check engines with, whatever the size of the evaluation split
TIMING_SAMPLES = 1024
Sizes = dict[str, int | None]


class LabelledParts(NamedTuple):
    """Labels of the rows of each part of data.json, and what errors say about its examples.

    `classes` are the label indices of the source, also those whose rows were all dropped.
    """

    source: str
    noun: str
    names: Sequence[str]
    classes: Sequence[int]
    labels: Mapping[str, Sequence[int]]


def sizes_of(resources: Any) -> Sizes:
    """Return the sizes of the splits from the resources of a job, where 0 stands for None."""
    return {
        split: getattr(resources, f"{split}_size") or None
        for split in ("train", "evaluation", "calibration")
    }


def rows_of(split: str, sizes: Sizes, counts: dict[str, int]) -> tuple[str, range]:
    """Return part and rows of a split; `counts` are the rows of each part.

    Evaluation is the source's own part, or the end of a pool, backwards. Train is the beginning of
    the rest, calibration follows. So none of the three depends on the size of one behind it. Only a
    train size of None takes what calibration, then at the beginning, and evaluation leave. An
    evaluation size of None takes the own part, or a fifth of a pool. Timing is the first
    TIMING_SAMPLES of the evaluation order.
    """
    own = "evaluation" in counts
    part = "evaluation" if own else POOL
    total = counts[part]
    if split == "timing":
        return part, evaluation_rows(min(TIMING_SAMPLES, total), total, own=own)
    size = sizes["evaluation"] or (total if own else total // 5)
    if split == "evaluation":
        return part, evaluation_rows(size, total, own=own)
    train, pool = sizes["train"], sizes["calibration"] or 0
    if train is None:
        end = counts["train"] if own else total - size
        rows = {"calibration": range(pool), "train": range(pool, max(pool, end))}
    else:
        rows = {"train": range(train), "calibration": range(train, train + pool)}
    return "train" if own else POOL, rows[split]


def evaluation_rows(size: int, total: int, *, own: bool) -> range:
    """Return the first `size` rows of the evaluation order."""
    return range(size) if own else range(total - 1, total - 1 - size, -1)


def check_ranges(parts: LabelledParts, sizes: Sizes) -> None:
    """Raise TightropeError if there are too few rows, or if calibration lacks a class."""
    counts = {part: len(labels) for part, labels in parts.labels.items()}
    own = "evaluation" in counts
    total = counts["evaluation" if own else POOL]
    evaluation = max(1, sizes["evaluation"] or (total if own else total // 5))
    rest = counts["train"] if own else max(0, total - evaluation)
    pool = sizes["calibration"] or 0
    check_size(parts, "train", max(0, rest - pool), sizes["train"])
    check_size(parts, "evaluation", total, evaluation)
    check_size(parts, "calibration", rest, pool)
    part, rows = rows_of("calibration", sizes, counts)
    check_classes(parts, parts.labels[part][:rest], rows)


def check_size(parts: LabelledParts, split: str, available: int, requested: int | None) -> None:
    """Raise TightropeError if a split is smaller than requested."""
    if requested is not None and available < requested:
        key = "calibration.pool" if split == "calibration" else f"splits.{split}"
        raise TightropeError(
            f"{parts.source}: only {available} distinct {parts.noun}s are left for {split}, "
            f"{key} asks for {requested}; lower {key} or the other splits, or bring more data"
        )


def check_classes(parts: LabelledParts, labels: Sequence[int], rows: range) -> None:
    """Raise TightropeError if a class has none of the calibration `rows`.

    `labels` are those of all rows that are not for evaluation.
    """
    first: dict[int, int] = {}
    for count, label in enumerate(islice(labels, rows.start, None), start=1):
        first.setdefault(label, count)
    missing = sorted(one for one in parts.classes if first.get(one, len(rows) + 1) > len(rows))
    if not missing:
        return
    worst = next((label for label in missing if label not in first), missing[0])
    if worst not in first:
        remedy = "none is left besides those for evaluation: bring more, or take the class out"
        if worst in labels:
            remedy = "all are among those for training: lower splits.train, or bring more"
    else:
        needed = max(first[label] for label in missing)
        remedy = f"raise calibration.pool from {len(rows)} to {needed} or more"
    raise TightropeError(
        f"{parts.source}: no {parts.noun} of class {parts.names[worst]!r} is in the "
        f"calibration split ({len(missing)} of {len(parts.classes)} classes are missing there); "
        f"{remedy}"
    )
