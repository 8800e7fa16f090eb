"""A training in a supervised child, with a smaller part of the batch at once where it must be."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psutil

from tightrope.errors import TightropeError, WorkFailed, is_out_of_memory
from tightrope.jobs.child import LIMIT_OF_MEMORY, PASSED_ON, Child, Limits
from tightrope.training.recipe import DEFAULTS, Recipe

Work = Callable[[int], Any]
# of the machine's memory that a training may have
MOST_OF_IT = 0.9


def run_training(
    work: Work, recipe: Recipe | None, *, limits: Limits, began: float | None = None
) -> Any:
    """What `work(parts)` gives in a child, `parts` being 1: into how many a batch is cut.

    Where a batch does not fit the memory and the recipe says to halve it, it is tried again with
    twice the parts; its time counts from `began` (`time.monotonic()`), or from now. Raises
    WorkFailed, also for a TightropeError of the work, unless it is one of the surroundings.
    """
    recipe = {**DEFAULTS, **(recipe or {})}
    parts, began = 1, time.monotonic() if began is None else began
    # beyond its memory the kernel kills, and does not say that this was why
    machine = MOST_OF_IT * psutil.virtual_memory().total
    limits = replace(limits, memory_bytes=min(limits.memory_bytes, machine))
    while True:
        try:
            with Child(told(work), limits, began=began) as child:
                value, error = child.ask(parts)
        except WorkFailed as failed:
            if not is_full(failed):
                raise
            if recipe["out_of_memory"] == "stop" or 2 * parts > recipe["batch"]:
                raise WorkFailed(
                    too_large(failed, recipe["batch"], parts), transient=False
                ) from None
            parts *= 2
            continue
        if error is None:
            return value
        raise error if isinstance(error, PASSED_ON) else WorkFailed(str(error), transient=False)


def told(work: Work) -> Callable[[int], tuple[Any, TightropeError | None]]:
    """The work with its expected error as a second value, not as a failure of the child."""

    def tell(parts: int) -> tuple[Any, TightropeError | None]:
        try:
            return work(parts), None
        except TightropeError as error:
            return None, error

    return tell


def is_full(failed: WorkFailed) -> bool:
    """Whether the memory was too small, for sure: a SIGKILL may have come from anywhere."""
    return LIMIT_OF_MEMORY in failed.reason or (
        is_out_of_memory(failed) and "killed by" not in failed.reason
    )


def too_large(failed: WorkFailed, batch: int, parts: int) -> str:
    """The reason for a batch that does not fit, with its remedy."""
    reason = failed.reason.partition(";")[0]
    if parts == 1 and batch > 1:
        remedy = f"lower train.batch = {batch}, or say train.out_of_memory: halve"
        return f"a batch of {batch} does not fit the memory ({reason}); {remedy}"
    return (
        f"not even {-(-batch // parts)} of a batch of {batch} fit the memory ({reason}); take a "
        "smaller model or input, or more memory"
    )


def train_or_stop(work: Work, recipe: Recipe | None, *, model: str, limits: Limits) -> None:
    """`run_training` for what nothing can be built without: any failure is a TightropeError."""
    try:
        run_training(work, recipe, limits=limits)
    except WorkFailed as failed:
        raise TightropeError(f"{model}: not trained: {failed.reason}") from None
