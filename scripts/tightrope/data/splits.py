"""Disjoint, stratified and reproducible splits."""

import math
import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tightrope.data.material import Material, Row
from tightrope.errors import TightropeError

SPLITS = ("train", "evaluation", "calibration")


def fingerprint(text: str) -> str:
    """Normalize case, spacing and punctuation of a text; equal fingerprints are duplicates."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.findall(r"\w+", text)) or "".join(text.split())


class Kind(NamedTuple):
    """The noun for examples in errors, and the fingerprint that identifies duplicates."""

    noun: str
    fingerprint: Callable[[Any], str]


TEXTS = Kind("text", fingerprint)
IMAGES = Kind("image", lambda image: image.digest)


def split_material(
    material: Material,
    sizes: dict[str, int | None],
    *,
    source: str,
    balanced: bool,
    seed: int,
    kind: Kind = TEXTS,
) -> dict[str, list[Row]]:
    """Split rows into train, evaluation and calibration, without duplicates in or across splits.

    Calibration rows are taken from the training material before train. For every n, the first n
    rows of a split have the label proportions of the whole. A size of None takes all rows for
    train; for evaluation it takes the source's whole evaluation split, or a fifth of a single pool.
    Raises TightropeError naming `source` if there are too few rows, or if calibration lacks a
    class.
    """
    if material.evaluation is None:
        pool = stratified(unique(material.train, kind), balanced=balanced, seed=seed)
        evaluation_size = sizes["evaluation"] or len(pool) // 5
        evaluation, rest = pool[:evaluation_size], pool[evaluation_size:]
    else:
        candidates = unique(material.evaluation, kind)
        evaluation = stratified(candidates, balanced=False, seed=seed)
        evaluation_size = sizes["evaluation"] or len(evaluation)
        evaluation = evaluation[:evaluation_size]
        # Exclude the whole evaluation split from training, even if only part of it is used.
        excluded = {kind.fingerprint(content) for content, _ in material.evaluation}
        pool = unique(material.train, kind)
        rest = [row for row in pool if kind.fingerprint(row[0]) not in excluded]
        rest = stratified(rest, balanced=balanced, seed=seed)
    calibration, train = rest[: sizes["calibration"]], rest[sizes["calibration"] :]
    parts = {"train": train[: sizes["train"]], "evaluation": evaluation, "calibration": calibration}
    requested = {**sizes, "evaluation": max(1, evaluation_size)}
    for split in SPLITS:
        check_size(source, split, len(parts[split]), requested[split], kind.noun)
    check_classes(source, material, rest, len(calibration), kind.noun)
    return parts


def check_size(source: str, split: str, available: int, requested: int | None, noun: str) -> None:
    """Raise TightropeError if a split is smaller than requested."""
    if requested is not None and available < requested:
        key = "calibration.pool" if split == "calibration" else f"splits.{split}"
        raise TightropeError(
            f"{source}: only {available} distinct {noun}s are left for {split}, {key} asks for "
            f"{requested}; lower {key} or the other splits, or bring more data"
        )


def check_classes(source: str, material: Material, rest: list[Row], pool: int, noun: str) -> None:
    """Raise TightropeError if a class has no row among the first `pool` of `rest`."""
    first_rows: dict[int, int] = {}
    for row, (_, label) in enumerate(rest, start=1):
        first_rows.setdefault(label, row)
    classes = {label for _, label in (*material.train, *(material.evaluation or ()))}
    missing = sorted(label for label in classes if first_rows.get(label, math.inf) > pool)
    if not missing:
        return
    worst = next((label for label in missing if label not in first_rows), missing[0])
    if worst not in first_rows:
        remedy = "none is left besides those for evaluation: bring more, or take the class out"
    else:
        needed = max(first_rows[label] for label in missing)
        remedy = f"raise calibration.pool from {pool} to {needed} or more"
    raise TightropeError(
        f"{source}: no {noun} of class {material.labels[worst]!r} is in the calibration split "
        f"({len(missing)} of {len(classes)} classes are missing there); {remedy}"
    )


def unique(rows: Iterable[Row], kind: Kind = TEXTS) -> list[Row]:
    """Drop blank texts, duplicates, and examples that occur with two labels."""
    first: dict[str, Row] = {}
    conflicting = set()
    for content, label in rows:
        key = kind.fingerprint(content)
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
