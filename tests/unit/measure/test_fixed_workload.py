import os
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import pytest
from busy import PROCESSORS
from tightrope.jobs.child import supervised
from tightrope.measure.latency import LIMITS, ROUNDS, reference_workload, timed_rounds


def workload(processors: list[int]) -> tuple[dict[str, Any], float]:
    """The state of these processors, and the CPU seconds that it took."""
    before = getrusage(RUSAGE_CHILDREN)
    state = reference_workload(processors)
    after = getrusage(RUSAGE_CHILDREN)
    return state, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_the_state_of_the_processors_is_twenty_rounds_load_and_frequencies() -> None:
    state, used = workload(PROCESSORS[-1:])
    assert set(state) == {"rounds_s", "load_average", "frequency_khz"}
    assert len(state["rounds_s"]) == ROUNDS == 20
    assert min(*state["rounds_s"], used) > 0
    assert state["load_average"] >= 0
    (frequency,) = state["frequency_khz"]
    assert frequency is None or frequency > 0
    assert sorted(os.sched_getaffinity(0)) == PROCESSORS, "the caller keeps its processors"


def pinned(processors: list[int]) -> set[int]:
    """In a child: where its threads run."""
    timed_rounds(processors)
    return os.sched_getaffinity(0)


@pytest.mark.skipif(len(PROCESSORS) < 2, reason="needs two processors")
def test_each_of_the_processors_does_the_whole_work() -> None:
    two, used = workload(PROCESSORS[-2:])
    assert len(two["frequency_khz"]) == 2
    assert supervised(pinned, PROCESSORS[-1:], limits=LIMITS) == {PROCESSORS[-1]}
    assert used > 1.5 * workload(PROCESSORS[-1:])[1]
