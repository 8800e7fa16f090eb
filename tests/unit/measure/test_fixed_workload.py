import os
import statistics
from resource import RUSAGE_CHILDREN, getrusage

import pytest
from busy import PROCESSORS, busy_child
from tightrope.measure.fixed_workload import ROUNDS, reference_workload
from tightrope.summary.noise import drift

ONE = PROCESSORS[-1]


def round_s(processors: list[int]) -> float:
    return statistics.median(reference_workload(processors)["rounds_s"])


@pytest.mark.parametrize("processors", [[ONE], PROCESSORS], ids=["one", "all"])
def test_the_state_of_the_processors_is_twenty_rounds_load_and_frequencies(
    processors: list[int],
) -> None:
    state = reference_workload(processors)
    assert set(state) == {"rounds_s", "load_average", "frequency_khz"}
    assert len(state["rounds_s"]) == ROUNDS == 20
    assert min(state["rounds_s"]) > 0
    assert state["load_average"] >= 0
    assert len(state["frequency_khz"]) == len(processors)
    assert all(value is None or value > 0 for value in state["frequency_khz"])


def test_the_caller_keeps_all_its_processors() -> None:
    reference_workload([ONE])
    assert sorted(os.sched_getaffinity(0)) == PROCESSORS


def test_rounds_are_slower_while_a_program_has_the_same_processor() -> None:
    with busy_child(ONE):
        beside = min(round_s([ONE]) for _ in range(3))
    assert beside > 1.3 * min(round_s([ONE]) for _ in range(3))


def test_a_program_that_starts_during_a_measurement_is_told() -> None:
    """Tried three times, for the machine may have other work before the program starts."""
    for _ in range(3):
        before = reference_workload([ONE])
        with busy_child(ONE):
            found = drift({"before": before, "after": reference_workload([ONE])})
        if found:
            break
    assert "slower after the measurement than before" in found[0]


def cpu_seconds(processors: list[int]) -> float:
    before = getrusage(RUSAGE_CHILDREN)
    reference_workload(processors)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.skipif(len(PROCESSORS) < 2, reason="needs two processors")
def test_each_of_the_processors_does_the_whole_work() -> None:
    assert cpu_seconds(PROCESSORS[-2:]) > 1.5 * cpu_seconds([ONE])
