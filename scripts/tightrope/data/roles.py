"""Which split a file belongs to, by the words of its name or of a folder's."""

import re
from collections.abc import Callable
from typing import TypeVar

from tightrope.errors import TightropeError

POOL = "pool"
WORDS = {
    "train": {"train", "training"},
    "evaluation": {"dev", "val", "valid", "validation", "eval", "evaluation"},
    "test": {"test"},
}
Item = TypeVar("Item")


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
