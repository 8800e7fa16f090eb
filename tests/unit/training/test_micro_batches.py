"""A batch that does not fit in memory: halved or told, and any other end is told as it is."""

import os
import time
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from tightrope.errors import ArtifactError, TightropeError, WorkFailed
from tightrope.jobs.child import Limits, supervised
from tightrope.machine.processes import proportional_bytes
from tightrope.training.recipe import run_training, train_or_stop

LIMITS = Limits(memory_bytes=1e12, seconds=60)
HALVE = {"batch": 8, "out_of_memory": "halve"}


def too_large_below(parts_that_fit: int) -> Any:
    """Work whose batch does not fit in memory, unless in so many micro-batches."""

    def work(micro_batches: int) -> int:
        torch.UntypedStorage(2**50 if micro_batches < parts_that_fit else 2**10)
        return micro_batches

    return work


def test_a_batch_that_does_not_fit_is_halved_or_ends_the_training_with_its_remedy() -> None:
    assert run_training(too_large_below(4), HALVE, limits=LIMITS) == 4
    words = (
        r"^a batch of 8 does not fit in memory \(RuntimeError: .*can't allocate memory.*\); lower "
        r"train\.batch = 8, or say train\.out_of_memory: halve$"
    )
    with pytest.raises(WorkFailed, match=words):
        run_training(too_large_below(4), {"batch": 8}, limits=LIMITS)
    with pytest.raises(WorkFailed, match="not even 1 of a batch of 8 fit in memory"):
        run_training(too_large_below(16), HALVE, limits=LIMITS)
    # a checkpoint that is not trained has no batch to lower
    with pytest.raises(WorkFailed, match=r"^(?!.*batch of).*can't allocate memory"):
        run_training(too_large_below(4), None, limits=LIMITS)


def test_the_limit_of_the_job_halves_a_batch_too() -> None:
    def work(micro_batches: int) -> int:
        held = np.ones(3 * 10**7 // micro_batches)  # float64
        if micro_batches == 1:
            time.sleep(5)  # until it is seen
        return micro_batches if held.size else 0

    # of a child: what it shares with a large process of tests may not count as its own
    own = supervised(lambda: proportional_bytes(psutil.Process()), limits=LIMITS)
    limit = own + 1.8e8
    assert run_training(work, HALVE, limits=Limits(memory_bytes=limit, seconds=60)) == 2


def test_other_ends_are_told_as_they_are_and_nothing_is_tried_again() -> None:
    """Among them a SIGKILL, which may come from anywhere."""
    for error, kind, words in (
        (TightropeError("texts: no examples; bring more"), WorkFailed, "^texts: no examples; bri"),
        (ArtifactError("data is gone"), ArtifactError, "data is gone"),
        (None, WorkFailed, "killed by SIGKILL"),
    ):

        def work(micro_batches: int, error: Exception | None = error) -> None:
            assert micro_batches == 1
            if error is not None:
                raise error
            os.kill(os.getpid(), 9)

        with pytest.raises(kind, match=words):
            run_training(work, HALVE, limits=LIMITS)
    # with the name of its model
    with pytest.raises(TightropeError, match=r"^m: not trained: ZeroDivisionError: "):
        train_or_stop(lambda _: 1 // 0, HALVE, model="m", limits=LIMITS)
