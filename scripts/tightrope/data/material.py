"""What a data source hands over: labelled texts or images, not yet split, and by which roles."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from tightrope.errors import TightropeError

POOL = "pool"
WORDS = {
    "train": {"train", "training"},
    "evaluation": {"dev", "val", "valid", "validation", "eval", "evaluation"},
    "test": {"test"},
}
Item = TypeVar("Item")

# a text or a StoredImage, and the index of its label
Row = tuple[Any, int]
# the same with the label as the source has it, int or str
Labelled = tuple[Any, Any]


class Material(NamedTuple):
    """Texts or images with their labels as indices into `labels`.

    `evaluation` is None where the source is one pool that has yet to be split; `revision` is
    the exact version of a remote source, `left_out` the number of its rows without text, image or
    label, and of files that are no images by their names.
    """

    labels: list[str]
    train: list[Row]
    evaluation: list[Row] | None = None
    revision: str | None = None
    left_out: int = 0


def labelled(train: list[Labelled], evaluation: list[Labelled] | None) -> Material:
    """Material whose labels are numbered in the order of their values."""
    values = {label for _, label in train + (evaluation or [])}
    ordered = sorted(values, key=lambda value: (isinstance(value, str), value))
    index = {value: number for number, value in enumerate(ordered)}

    def rows(part: list[Labelled]) -> list[Row]:
        return [(content, index[label]) for content, label in part]

    return Material(
        labels=[str(value) for value in ordered],
        train=rows(train),
        evaluation=None if evaluation is None else rows(evaluation),
    )


def role_of(name: str) -> str:
    """train, evaluation, test or pool, by the words of the name."""
    words = set(re.split(r"[^a-z]+", name.lower()))
    return next((role for role, known in WORDS.items() if words & known), POOL)


def train_and_evaluation(
    source: str, roles: dict[str, list[Item]], name_of: Callable[[Item], str]
) -> tuple[list[Item], list[Item] | None]:
    """What is set apart for training and evaluation; one pool and None where nothing is.

    test counts only where there is no other evaluation; with train or evaluation alone all is
    one pool. Raises TightropeError for an item whose name says neither where others do.
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
