"""From the joules of blocks to those of a call."""

from typing import Any

import pytest
from gpu_states import state
from tightrope.records.energy import joules_per_call

BLOCKS = [[0.1] * 2, [0.1] * 3, [0.1] * 5]


def shape(**changes: Any) -> dict[str, Any]:
    return {"blocks_s": BLOCKS, "energy_j": [4.0, 90.0, 10.0], **changes}


def long_block(joules: float | None, calls: int, **changes: Any) -> dict[str, Any]:
    return {"energy_j": joules, "calls": calls, "gpu": state(**changes)}


def test_it_is_the_joules_of_the_blocks_that_count_over_their_calls() -> None:
    assert joules_per_call(shape(), [0, 2]) == pytest.approx(14 / 7)
    assert joules_per_call(shape(), [0, 1, 2]) == pytest.approx(104 / 10)


def test_a_block_of_unknown_energy_is_left_out_with_its_calls() -> None:
    assert joules_per_call(shape(energy_j=[4.0, None, 10.0]), [0, 1, 2]) == pytest.approx(2)


@pytest.mark.parametrize("joules", [None, [None, None, None]])
def test_where_no_energy_is_known_there_is_none(joules: Any) -> None:
    assert joules_per_call(shape(energy_j=joules), [0, 1, 2]) is None


def test_a_record_from_before_has_none() -> None:
    assert joules_per_call({"blocks_s": BLOCKS}, [0, 1]) is None


def test_without_blocks_that_count_there_is_none() -> None:
    assert joules_per_call(shape(), []) is None
    assert joules_per_call(shape(long_blocks=[long_block(300.0, 100)]), []) is None


def test_long_blocks_stand_in_for_blocks_that_are_too_short() -> None:
    blocks = [long_block(300.0, 100), long_block(340.0, 60), long_block(None, 1000)]
    assert joules_per_call(shape(long_blocks=blocks), [0]) == pytest.approx(640 / 160)


@pytest.mark.parametrize("cause", [{"throttled": ["thermal slowdown"]}, {"other_processes": 1}])
def test_a_long_block_counts_unless_the_gpu_was_slowed_down_or_shared(cause: Any) -> None:
    blocks = [long_block(300.0, 100), long_block(900.0, 100, **cause)]
    assert joules_per_call(shape(long_blocks=blocks), [0]) == pytest.approx(3.0)
    assert joules_per_call(shape(long_blocks=blocks[1:]), [0]) is None


def test_a_power_cap_and_a_state_that_is_not_reported_leave_a_long_block_as_it_is() -> None:
    capped = long_block(300.0, 100, throttled=["power cap"])
    unknown = {"energy_j": 100.0, "calls": 100, "gpu": None}
    assert joules_per_call(shape(long_blocks=[capped, unknown]), [0]) == pytest.approx(2.0)
