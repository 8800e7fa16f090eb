"""Labelled examples of a source, their roles, and the splits: distinct, in a reproducible order."""

import json
import os
import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.manifest import SCHEMA, read_manifest
from tightrope.artifacts.manifest_types import DataManifest
from tightrope.errors import TightropeError, printable
from tightrope.signature import IMAGE

POOL = "pool"
ROLE_WORDS = {
    "train": {"train", "training"},
    "evaluation": {"dev", "val", "valid", "validation", "eval", "evaluation"},
    "test": {"test"},
}
Item = TypeVar("Item")
NUMBER = re.compile("[-+]?[0-9]+")

# a text or a StoredImage, and the index of its label
Row = tuple[Any, int]
# a text or a StoredImage, and its label in the source, int or str
Labelled = tuple[Any, Any]
SPLITS = ("train", "evaluation", "calibration", "timing")
# examples to time and to check engines with, whatever the size of the evaluation split
TIMING_SAMPLES = 1024
Sizes = dict[str, int | None]
RANDOM_EVALUATION = 512
# distance between the seeds of random inputs for two seeds of a model, and for two splits
SEEDS = 1_000_000
CALIBRATION_SEEDS = 500_000


class Material(NamedTuple):
    """Texts or images with labels as indices into `labels`.

    `evaluation` is None if the source is a single pool that is not split yet; `revision` is the
    exact version of a remote source; `left_out` counts rows without text, image or label, and files
    that are no images by their names, by the role of their table or folder.
    """

    labels: list[str]
    train: list[Row]
    evaluation: list[Row] | None = None
    revision: str | None = None
    left_out: Mapping[str, int] = {}


def number_labels(train: list[Labelled], evaluation: list[Labelled] | None) -> Material:
    """Return Material with labels numbered in their order; a number is the label of its digits."""
    ordered = in_order({str(label) for _, label in train + (evaluation or [])})
    index = {name: number for number, name in enumerate(ordered)}

    def rows(part: list[Labelled]) -> list[Row]:
        return [(content, index[str(label)]) for content, label in part]

    return Material(
        labels=ordered,
        train=rows(train),
        evaluation=None if evaluation is None else rows(evaluation),
    )


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of labels sorted: by value if all are numbers or LABEL_0 …, else by alphabet."""
    numbers = {name: name.removeprefix("LABEL_") for name in names}
    by_value = all(map(NUMBER.fullmatch, numbers.values()))
    return sorted(numbers, key=lambda name: (int(numbers[name]) if by_value else 0, name))


def require_clear(source: str, labels: list[str]) -> None:
    """Raise TightropeError for labels that look alike, or control a terminal."""
    known: dict[str, str] = {}
    for label in labels:
        if label != printable(label):
            raise TightropeError(
                f"{source}: the label {label!r} has characters that cannot be shown; rename it"
            )
        shown = unicodedata.normalize("NFKC", label).replace("\u200b", "")
        other = known.setdefault(" ".join(shown.split()), label)
        if other is not label:
            raise TightropeError(
                f"{source}: the labels {other!r} and {label!r} differ only in space or Unicode "
                "form; write them alike, or rename one"
            )


def role_of(name: str) -> str:
    """Return train, evaluation, test or pool, from the words in `name`."""
    words = set(re.split(r"[^a-z]+", name.lower()))
    return next((role for role, role_words in ROLE_WORDS.items() if words & role_words), POOL)


def train_and_evaluation(
    source: str, roles: dict[str, list[Item]], name_of: Callable[[Item], str]
) -> tuple[list[Item], list[Item] | None]:
    """Return the items for training and for evaluation, or a single pool and None.

    test is used only without another evaluation; with only train or only evaluation, all items are
    one pool. Raises TightropeError for an item whose name has no role if other items have both.
    """
    evaluation = roles.get("evaluation") or roles.get("test", [])
    train, pool = roles.get("train", []), roles.get(POOL, [])
    if not (train and evaluation):
        return [*train, *evaluation, *pool], None
    if pool:
        raise TightropeError(
            f"{name_of(pool[0])}: its name says neither train nor evaluation, others that {source} "
            "matches do; rename it or narrow the pattern"
        )
    return train, evaluation


def fingerprint(text: str) -> str:
    """Normalize case, spacing and Unicode form of a text; equal fingerprints are duplicates."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def identity(content: Any) -> str:
    """Return what duplicates share: the fingerprint of a text, the digest of a StoredImage."""
    return fingerprint(content) if isinstance(content, str) else content.digest


def ordered(material: Material, *, balanced: bool, seed: int) -> dict[str, list[Row]]:
    """Return distinct rows by part: train and evaluation if the source has both, else pool.

    For every n, the first n rows and the last n rows of a part have its label proportions. No row
    of train occurs in the source's evaluation split.
    """
    rows = unique(material.train)
    if material.evaluation is None:
        return {POOL: stratified(rows, balanced=balanced, seed=seed)}
    excluded = {identity(content) for content, _ in material.evaluation}
    rows = [row for row in rows if identity(row[0]) not in excluded]
    return {
        "train": stratified(rows, balanced=balanced, seed=seed),
        "evaluation": stratified(unique(material.evaluation), balanced=False, seed=seed),
    }


def left_out(material: Material) -> dict[str, dict[str, int]]:
    """Return by part how many rows there are, and how many `ordered` leaves out by the reason."""
    judged, lost = material.evaluation or [], material.left_out
    parts = {"train": material.train, "evaluation": judged}
    if material.evaluation is None:
        parts, lost = {POOL: material.train}, {POOL: sum(lost.values())}
    excluded, found = {identity(content) for content, _ in judged}, {}
    for name, rows in parts.items():
        labels: dict[str, set[int]] = defaultdict(set)
        for content, label in rows:
            labels[identity(content)].add(label)
        known = [key for content, _ in rows if (key := identity(content))]
        contradictory = sum(len(labels[key]) > 1 for key in known)
        clear = {key for key in known if len(labels[key]) == 1}
        total = len(rows) + lost.get(name, 0)
        found[name] = {
            "rows": total,
            "empty": total - len(known),
            "equal": len(known) - contradictory - len(clear),
            "contradictory": contradictory,
            "in_evaluation": len(clear & excluded) if name == "train" else 0,
        }
    return found


def limited(parts: dict[str, list[Row]], limits: dict[str, int | None]) -> dict[str, list[Row]]:
    """Return what is kept of `ordered` parts: as many rows as `limits` has for each side.

    Of a pool, the train side is its first rows, evaluation its last ones. A limit of None keeps
    all rows.
    """
    first, last = limits["train"], limits["evaluation"]
    if POOL not in parts:
        return {name: rows[: limits[name]] for name, rows in parts.items()}
    pool = parts[POOL]
    if first is None or last is None or first + last >= len(pool):
        return parts
    return {POOL: pool[:first] + pool[len(pool) - last :]}


def unique(rows: Iterable[Row]) -> list[Row]:
    """Drop blank texts, duplicates, and examples that occur with two labels."""
    first: dict[str, Row] = {}
    conflicting = set()
    for content, label in rows:
        key = identity(content)
        if key and first.setdefault(key, (content, label))[1] != label:
            conflicting.add(key)
    return [row for key, row in first.items() if key not in conflicting]


def stratified(rows: list[Row], *, balanced: bool, seed: int) -> list[Row]:
    """Shuffle rows by `seed` and interleave labels so that every first n has their proportions.

    With `balanced`, each label is first reduced to the row count of the rarest.
    """
    by_label: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_label[row[1]].append(row)
    fewest = min(map(len, by_label.values()), default=0)
    ranked = []
    for label in sorted(by_label):
        group = by_label[label]
        random.Random(f"{seed} {label}").shuffle(group)
        group = group[:fewest] if balanced else group
        ranked += [((i + 0.5) / len(group), label, row) for i, row in enumerate(group)]
    return [row for *_, row in sorted(ranked)]


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
    evaluation = sizes["evaluation"] or (total if own else total // 5)
    if split in ("evaluation", "timing"):
        size = evaluation if split == "evaluation" else min(TIMING_SAMPLES, total)
        return part, range(size) if own else range(total - 1, total - 1 - size, -1)
    train, pool = sizes["train"], sizes["calibration"] or 0
    if train is None:
        end = counts["train"] if own else total - evaluation
        rows = {"calibration": range(pool), "train": range(pool, max(pool, end))}
    else:
        rows = {"train": range(train), "calibration": range(train, train + pool)}
    return "train" if own else POOL, rows[split]


def check_ranges(parts: LabelledParts, sizes: Sizes) -> None:
    """Raise TightropeError if there are too few rows, or if calibration lacks a class."""
    counts = {part: len(labels) for part, labels in parts.labels.items()}
    own = "evaluation" in counts
    total = counts["evaluation" if own else POOL]
    evaluation = max(1, sizes["evaluation"] or (total if own else total // 5))
    rest = counts["train"] if own else max(0, total - evaluation)
    pool = sizes["calibration"] or 0
    for split, available, requested in (
        ("train", max(0, rest - pool), sizes["train"]),
        ("evaluation", total, evaluation),
        ("calibration", rest, pool),
    ):
        if requested is not None and available < requested:
            key = "calibration.pool" if split == "calibration" else f"splits.{split}"
            raise TightropeError(
                f"{parts.source}: only {available} distinct {parts.noun}s are left for {split}, "
                f"{key} asks for {requested}; lower {key} or the other splits, or bring more data"
            )
    part, rows = rows_of("calibration", sizes, counts)
    check_classes(parts, parts.labels[part][:rest], rows)


def check_classes(parts: LabelledParts, labels: Sequence[int], rows: range) -> None:
    """Raise TightropeError if a class of the `labels` not for evaluation has no calibration row."""
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


def split_data(data: Path | str, target: Path | str, *, split: str, sizes: Sizes) -> None:
    """Write manifest `target` of a split (train, evaluation, calibration, timing) of `data`.

    It refers to a file beside `data`. `sizes` are those of train, evaluation and calibration, None
    for all examples. Raises TightropeError where the examples are too few for all splits together,
    or where calibration lacks a class.
    """
    material = read_manifest(data, DataManifest)
    folder = Path(data).parent
    file, files = None, {}
    if material["parts"]:
        labels = {name: labels_in(folder / one["file"]) for name, one in material["parts"].items()}
        noun = "image" if material["task"] == IMAGE else "text"
        names, classes = material["labels"] or [], material["classes"]
        check_ranges(LabelledParts(material["source"], noun, names, classes, labels), sizes)
        part, rows = rows_of(split, sizes, {name: len(one) for name, one in labels.items()})
        name = material["parts"][part]["file"]
        file = Path(os.path.relpath(folder / name, Path(target).parent)).as_posix()
        files = {file: material["files"][name]}
    else:
        rows = random_rows(split, sizes, material["seed"])
    fields: dict[str, Any] = {
        name: material.get(name) for name in ("task", "source", "revision", "labels", "left_out")
    }
    fields |= {"split": split, "file": file, "samples": len(rows), "files": files}
    write_artifact(target, {**fields, "rows": [rows.start, rows.stop, rows.step], "schema": SCHEMA})


def labels_in(file: Path) -> Sequence[int]:
    """Return the label of each row of a file beside data.json."""
    # imports numpy, which the plan, that reads sources, does not need
    from tightrope.inputs.encode import SUFFIX, ImageSplit

    if file.suffix == SUFFIX:
        return ImageSplit(file).labels()
    return [json.loads(line)["label"] for line in file.read_text().splitlines()]


def random_rows(split: str, sizes: Sizes, seed: int) -> range:
    """Return the seeds of the random inputs of a split, none for train."""
    first = seed * SEEDS
    if split == "train":
        return range(0)
    if split == "calibration":
        begin = first + CALIBRATION_SEEDS
        return range(begin, begin + (sizes["calibration"] or 0))
    size = TIMING_SAMPLES if split == "timing" else sizes["evaluation"] or RANDOM_EVALUATION
    return range(first, first + size)
