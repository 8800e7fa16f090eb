"""Distinct examples in a stratified, reproducible order, from which splits take theirs."""

import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tightrope.data.material import POOL, Material, Row


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


def ordered(
    material: Material, *, balanced: bool, seed: int, kind: Kind = TEXTS
) -> dict[str, list[Row]]:
    """Return distinct rows by part: train and evaluation if the source has both, else pool.

    For every n, the first n rows and the last n rows of a part have its label proportions. No row
    of train occurs in the source's evaluation split.
    """
    rows = unique(material.train, kind)
    if material.evaluation is None:
        return {POOL: stratified(rows, balanced=balanced, seed=seed)}
    excluded = {kind.fingerprint(content) for content, _ in material.evaluation}
    rows = [row for row in rows if kind.fingerprint(row[0]) not in excluded]
    return {
        "train": stratified(rows, balanced=balanced, seed=seed),
        "evaluation": stratified(unique(material.evaluation, kind), balanced=False, seed=seed),
    }


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
