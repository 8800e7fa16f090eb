"""Labelled texts or images that a data source returns before splitting, and their roles."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from tightrope.errors import TightropeError, printable

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
