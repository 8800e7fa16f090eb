"""What the report says of load and of a machine that changed its speed."""

from typing import Any

import pytest
from disturbed import QUIET, WAITED
from tightrope.summary.measured import drift, why_disturbed, why_noisy

PREEMPTED = {**QUIET, "waited": None, "preempted": 500.0}
STOLEN = {**QUIET, "stolen": 0.5}
NOBODY: dict[str, float] = {}


def shape(**changes: Any) -> dict[str, Any]:
    return {"pairs": [QUIET], "foreign_cores": [0.0], "idle_share": 0.0, **changes}


def reference(before: list[float], after: list[float]) -> dict[str, Any]:
    return {"before": {"rounds_s": before}, "after": {"rounds_s": after}}


def test_a_row_without_a_number_says_how_many_pairs_were_left_and_what_took_the_others() -> None:
    one = shape(pairs=[WAITED, WAITED, STOLEN, QUIET], foreign_cores=[1.0])
    assert why_disturbed(one, 1, 3, NOBODY) == (
        "only 1 of 4 pairs of blocks were undisturbed, 3 are needed: their threads waited for a "
        "CPU that another program used and the hypervisor took the processor"
    )


def test_the_most_frequent_cause_is_named_first() -> None:
    one = shape(pairs=[WAITED, STOLEN, STOLEN], foreign_cores=[1.0])
    words = why_disturbed(one, 0, 3, NOBODY)
    assert words.index("the hypervisor took") < words.index("their threads waited")


def test_where_waiting_is_not_counted_the_lost_processor_is_the_cause() -> None:
    words = why_disturbed(shape(pairs=[PREEMPTED], foreign_cores=[1.0]), 0, 3, NOBODY)
    assert words.endswith("their threads were preempted by another program")


THROTTLED = {**QUIET, "throttled": ["power cap", "thermal slowdown"], "other_processes": 0}
SHARED = {**QUIET, "throttled": [], "other_processes": 1}


def test_a_gpu_that_was_throttled_or_shared_is_told_with_the_reasons_alone() -> None:
    busiest = {"backupd": 0.25}
    one = shape(pairs=[THROTTLED, THROTTLED, SHARED, QUIET], foreign_cores=[0.0])
    assert why_disturbed(one, 1, 3, busiest) == (
        "only 1 of 4 pairs of blocks were undisturbed, 3 are needed: the GPU was throttled "
        "(thermal slowdown) and other processes on the GPU"
    )
    one["pairs"].append(WAITED)
    one["foreign_cores"] = [1.0]
    assert why_disturbed(one, 1, 3, busiest).endswith("; the busiest: backupd (25 % of a core)")


def test_the_loudest_programs_are_named_with_their_share_of_a_core() -> None:
    busiest = {"python3 train.py": 0.97, "backupd": 0.25}
    words = why_disturbed(shape(pairs=[WAITED], foreign_cores=[1.0]), 0, 3, busiest)
    assert words.endswith(
        "; the busiest: python3 train.py (97 % of a core), backupd (25 % of a core)"
    )


@pytest.mark.parametrize("known", [[], [0.1], [None], [None, 0.05]])
def test_little_or_unknown_foreign_load_is_no_noise(known: list[float | None]) -> None:
    assert why_noisy(shape(foreign_cores=known), None) == []


def test_other_programs_are_a_reason_with_what_they_used_of_all_the_time() -> None:
    """A single short window says little: it is blurred by the ticks of idle time."""
    (reason,) = why_noisy(shape(foreign_cores=[0.0, 1.26, None, 0.3]), None)
    assert reason == "other programs or the hypervisor used 0.5 cores of its processors"
    assert why_noisy(shape(foreign_cores=[0.0, 0.0, None, 0.3]), None) == []


def test_an_engine_that_works_out_of_turn_is_a_reason() -> None:
    assert why_noisy(shape(idle_share=0.02), None) == []
    (reason,) = why_noisy(shape(idle_share=0.31), None)
    assert reason == "the engine that was not timed used 31 % of a core"


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (0.0109, []),
        (0.0091, []),
        (0.012, ["the machine was 20 % slower after the measurement than before"]),
        (0.008, ["the machine was 20 % faster after the measurement than before"]),
    ],
)
def test_a_machine_that_changes_speed_is_a_reason(after: float, expected: list[str]) -> None:
    assert drift(reference([0.01] * 20, [after] * 20)) == expected


def test_one_slow_round_is_no_drift() -> None:
    assert drift(reference([0.01] * 20, [0.01] * 12 + [0.5] * 8)) == []


def test_without_a_reference_nothing_is_said_of_drift() -> None:
    assert drift(None) == []
    assert why_noisy(shape(), None) == []


def test_all_reasons_are_told_at_once() -> None:
    one = shape(foreign_cores=[2.0], idle_share=0.5)
    assert len(why_noisy(one, reference([1.0], [2.0]))) == 3
