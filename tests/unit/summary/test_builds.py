"""What summary.json says of several builds of an engine."""

from typing import Any

import msgspec
import pytest
from raced import HOST
from tightrope.records.builds import BuildsRecord
from tightrope.records.rounds import FEWEST_ROUNDS
from tightrope.summary.builds import builds_entry
from tightrope.summary.builds_types import Builds

SHAPE = {"batch": 1, "sequence": 64}


def rounds(*calls_s: float, count: int = 12, foreign: float = 0.0) -> list[dict[str, Any]]:
    """Rounds in which builds take so long, give or take a percent."""
    return [
        {
            "blocks_s": [
                [one * (1 + 0.01 * ((number + place) % 3))] * 3 for place, one in enumerate(calls_s)
            ],
            "foreign_cores": foreign,
        }
        for number in range(count)
    ]


def record(made: list[dict[str, Any]], **changes: Any) -> BuildsRecord:
    fields = {
        **{"model": "m", "variant": "cpu-tvm-fp32", "host": HOST, "libraries": {}},
        **{"threads": 2, "processors": [0, 1], "shape": SHAPE, "options": {}},
        **{"identical": False, "rounds": made},
        "builds": [{"build_s": 1.0 + number, "size_bytes": 1000} for number in range(3)],
    }
    return BuildsRecord(**{**fields, **changes})


def test_each_build_is_compared_with_the_median_build_and_the_slowest_with_the_fastest() -> None:
    found = builds_entry(record(rounds(0.012, 0.010, 0.020)))
    assert msgspec.convert(found, Builds) == found
    median, fast, slow = found["builds"]
    assert median["over_median"] is None
    assert fast["over_median"]["ratio"] == pytest.approx(0.010 / 0.012, rel=0.01)
    assert slow["over_median"]["ratio"] == pytest.approx(0.020 / 0.012, rel=0.01)
    assert (fast["over_median"]["matters"], slow["over_median"]["matters"]) == (False, True)
    assert slow["low"] < slow["call_s"] < slow["high"]
    assert found["spread"]["ratio"] == pytest.approx(2.0, rel=0.01)
    assert found["spread"]["low"] > 1.10 and found["spread"]["matters"]
    assert (found["rounds"], found["disturbed_rounds"], found["sizes_differ"]) == (12, 0, False)


def test_equal_builds_have_a_spread_that_does_not_matter() -> None:
    spread = builds_entry(record(rounds(0.01, 0.01, 0.01)))["spread"]
    assert 0.98 < spread["ratio"] < 1.02 and not spread["matters"]


def test_disturbed_rounds_do_not_count() -> None:
    made = rounds(0.01, 0.01, 0.01) + rounds(0.01, 0.01, 0.09, count=4, foreign=0.5)
    found = builds_entry(record(made))
    assert (found["rounds"], found["disturbed_rounds"], found["disturbed"]) == (12, 4, None)
    assert found["spread"]["ratio"] < 1.02


def test_with_too_few_undisturbed_rounds_there_is_no_number_unless_it_is_accepted() -> None:
    made = rounds(0.01, 0.01, 0.02, count=FEWEST_ROUNDS - 1)
    own = record(made + rounds(0.01, 0.01, 0.02, count=9, foreign=0.5))
    found = builds_entry(own)
    assert found["spread"] is found["builds"][0]["call_s"] is None
    assert "used up to 0.5 cores" in found["disturbed"] and not found["provisional"]
    accepted = builds_entry(own, accept_disturbed=True)
    assert accepted["provisional"] and accepted["spread"]["matters"]


def test_sizes_that_differ_are_told() -> None:
    builds = [{"build_s": 1.0, "size_bytes": size} for size in (10, 10, 11)]
    assert builds_entry(record(rounds(0.01, 0.01, 0.01), builds=builds))["sizes_differ"]


def test_a_failed_record_keeps_its_reason() -> None:
    own = record([], status="failed", reason="build 2: no room", builds=[], identical=None)
    found = builds_entry(own)
    assert msgspec.convert(found, Builds) == found
    assert (found["reason"], found["builds"], found["spread"]) == ("build 2: no room", [], None)
    assert found["sizes_differ"] is found["identical"] is None
