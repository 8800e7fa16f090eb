"""The GPU while a shape was timed, from its states after the blocks."""

from typing import Any

import pytest
from gpu_states import STATE, state
from tightrope.summary.results import gpu_entry


def entry(*states: Any, **fields: Any) -> Any:
    return gpu_entry({"gpu": list(states), **fields})


@pytest.mark.parametrize("shape", [{}, {"gpu": None}, {"gpu": [None, None]}])
def test_without_a_gpu_there_is_nothing(shape: dict[str, Any]) -> None:
    assert gpu_entry(shape) is None


def test_it_has_medians_extremes_and_all_reasons() -> None:
    found = entry(
        state(power_w=300.0, throttled=["power cap"]),
        state(sm_clock_mhz=1410, temperature_c=74, throttled=["thermal slowdown", "power cap"]),
        None,
        state(other_processes=2, memory_bytes=4 * 10**9),
    )
    assert found == {
        "sm_clock_mhz": 1980,
        "lowest_sm_clock_mhz": 1410,
        "memory_clock_mhz": 2619,
        "power_w": 400.0,
        "temperature_c": 74,
        "throttled": ["power cap", "thermal slowdown"],
        "clocks_locked": None,
        "other_processes": 2,
        "memory_bytes": 4 * 10**9,
    }


def test_what_nvml_does_not_report_is_unknown() -> None:
    found = entry(dict.fromkeys(STATE))
    assert found is not None and set(found.values()) == {None}


def test_power_is_that_after_the_long_blocks_where_there_are_some() -> None:
    blocks = [{"gpu": state(power_w=watts)} for watts in (500.0, 600.0)]
    assert entry(state(), long_blocks=blocks)["power_w"] == 550.0
    assert entry(state(), long_blocks=[{"gpu": None}])["power_w"] == 400.0


@pytest.mark.parametrize(
    ("changes", "locked"),
    [
        ([{}, {}], None),
        ([{}, {"sm_clock_mhz": 1965}], False),
        ([{}, {"sm_clock_mhz": 1965, "throttled": ["power cap"]}], None),
        ([{"application_clocks": True}, {"application_clocks": True}], True),
        ([{"application_clocks": True}, {"sm_clock_mhz": 1965}], False),
        ([{"application_clocks": None}, {"sm_clock_mhz": None}], None),
    ],
)
def test_clocks_are_locked_as_far_as_it_can_be_told(changes: Any, locked: bool | None) -> None:
    assert entry(*(state(**one) for one in changes))["clocks_locked"] is locked
