from typing import Any

import pytest
from tightrope.noise import drift, hit, quiet_pairs, reasons

QUIET = {"seconds": 0.05, "waited_s": 0.0, "preempted": 0, "stolen_s": 0.0}


def block(**changes: Any) -> dict[str, Any]:
    return {**QUIET, **changes}


def shape(hits: list[str | None], **changes: Any) -> dict[str, Any]:
    return {"hits": hits, "other_cores": 0.0, "idle_share": 0.0, **changes}


def reference(before: list[float], after: list[float]) -> dict[str, Any]:
    return {"before": {"rounds_s": before}, "after": {"rounds_s": after}}


@pytest.mark.parametrize("changes", [{}, {"waited_s": 0.0024}, {"stolen_s": 0.0024}])
def test_a_block_that_had_its_processors_is_not_marked(changes: dict[str, Any]) -> None:
    assert hit(block(**changes), 1) is None


def test_how_long_a_block_took_marks_nothing() -> None:
    for seconds in (1e-6, 0.05, 60.0):
        assert hit(block(seconds=seconds), 1) is None


def test_more_than_a_twentieth_of_waiting_marks_a_block() -> None:
    assert hit(block(waited_s=0.0026), 1) == "waited 2.6 ms for a processor"
    assert hit(block(seconds=1.0, waited_s=0.049), 1) is None
    assert hit(block(seconds=1.0, waited_s=0.051), 1) == "waited 51.0 ms for a processor"


def test_more_than_a_twentieth_of_stolen_time_marks_a_block() -> None:
    assert hit(block(stolen_s=0.01), 1) == "the hypervisor took 10 ms"
    assert hit(block(seconds=1.0, stolen_s=0.04), 1) is None


def test_losing_its_processor_counts_only_where_waiting_is_not_counted() -> None:
    assert hit(block(preempted=1000), 1) is None
    unknown = block(waited_s=None, seconds=1.0)
    assert hit({**unknown, "preempted": 101}, 1) is None
    assert hit({**unknown, "preempted": 102}, 1) == "lost its processor 102 times"
    assert hit({**unknown, "preempted": 102}, 2) is None


def test_a_short_block_may_lose_its_processor_once() -> None:
    assert hit(block(waited_s=None, seconds=1e-5, preempted=1), 1) is None
    assert hit(block(waited_s=None, seconds=1e-5, preempted=2), 1) is not None


def test_stolen_time_marks_a_block_also_where_waiting_is_not_counted() -> None:
    assert hit(block(waited_s=None, stolen_s=0.01), 1) == "the hypervisor took 10 ms"


def test_only_quiet_pairs_count_where_they_are_enough() -> None:
    hits = [None, "hit", None, "hit", None]
    assert quiet_pairs(shape(hits), 3) == [0, 2, 4]
    assert quiet_pairs(shape(hits), 2) == [0, 2, 4]
    assert quiet_pairs(shape(hits), 4) == [0, 1, 2, 3, 4]


def test_pairs_that_were_all_hit_all_count() -> None:
    assert quiet_pairs(shape(["hit"] * 3), 1) == [0, 1, 2]


def test_what_is_left_out_and_what_is_told_agree() -> None:
    """Either the marked pairs are left out, or a reason says that they are not."""
    for marked in range(6):
        one = shape(["hit"] * marked + [None] * (5 - marked))
        left_out = len(quiet_pairs(one, 3)) < 5
        assert left_out + bool(reasons(one, None, 3)) == (marked > 0)


def test_too_many_hit_pairs_are_a_reason_with_their_number() -> None:
    (reason,) = reasons(shape(["hit", None, "hit", "hit"]), None, 2)
    assert reason.startswith("3 of 4 pairs of blocks were hit by other load")


def test_few_pairs_without_a_hit_are_no_noise() -> None:
    assert reasons(shape([None, None]), None, 20) == []


def test_other_programs_are_a_reason_from_half_a_core_on() -> None:
    assert reasons(shape([None], other_cores=0.5), None, 1) == []
    (reason,) = reasons(shape([None], other_cores=1.26), None, 1)
    assert reason == "other programs kept 1.3 cores busy"


def test_an_engine_that_works_out_of_turn_is_a_reason() -> None:
    assert reasons(shape([None], idle_share=0.02), None, 1) == []
    (reason,) = reasons(shape([None], idle_share=0.31), None, 1)
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
    assert reasons(shape([None]), None, 1) == []


def test_all_reasons_are_told_at_once() -> None:
    one = shape(["hit", "hit"], other_cores=2.0, idle_share=0.5)
    assert len(reasons(one, reference([1.0], [2.0]), 1)) == 4
