"""What summary.json says of causes that a setting removes."""

from typing import Any

import msgspec
import pytest
from raced import HOST
from tightrope.records.profile import CausesRecord
from tightrope.records.record import FEWEST_ROUNDS
from tightrope.summary.causes import Causes, causes_entry

WORDS = {"cause": "25 % of the request is padding", "setting": "buckets: {sequence: [96]}"}


def rounds(own: float, without: float, count: int = 12, foreign: float = 0.0) -> list[Any]:
    """Rounds in which calls take so long, give or take a percent."""
    return [
        {
            "blocks_s": [[one * (1 + 0.01 * (number % 3))] * 3 for one in (own, without)],
            "foreign_cores": foreign,
        }
        for number in range(count)
    ]


def record(*made: list[Any], low: float = 0.2, high: float = 0.3, **changes: Any) -> Any:
    known = {"model": "m", "variant": "cpu-openvino-fp32", "host": HOST, "libraries": {}}
    cause = {**WORDS, "batch": 1, "sequence": 96, "low": low, "high": high, "profiled_s": 0.02}
    causes = [{**cause, "reason": None, "rounds": one} for one in made]
    work = {"threads": 2, "processors": [0, 1], "causes": causes}
    return CausesRecord(**{**known, **work, **changes})


def entry(own: Any, **settings: Any) -> Any:
    found = causes_entry(own, **settings)
    assert msgspec.convert(found, Causes) == found
    return found


def test_a_saving_has_an_interval_and_meets_its_prediction() -> None:
    (cause,) = entry(record(rounds(0.010, 0.0075)))["causes"]
    assert cause["call_s"] == pytest.approx(0.0101, rel=0.01)
    saved = cause["saved"]
    assert saved["value"] == pytest.approx(0.0025, rel=0.02)
    assert saved["low"] < saved["value"] < saved["high"]
    predicted = cause["predicted_low"], cause["predicted_high"]
    assert predicted == pytest.approx((0.002, 0.003), rel=0.02)
    assert (cause["within"], cause["rounds"], cause["disturbed"]) == (True, 12, None)
    # less, more or nothing saved misses the prediction
    for without in (0.0095, 0.005, 0.012):
        (cause,) = entry(record(rounds(0.010, without)))["causes"]
        assert cause["within"] is False
        assert (cause["saved"]["value"] < 0) == (without > 0.010)


def test_disturbed_rounds_do_not_count_unless_they_are_accepted() -> None:
    made = rounds(0.01, 0.0075, FEWEST_ROUNDS - 1) + rounds(0.01, 0.0075, 9, foreign=0.5)
    (cause,) = entry(record(made))["causes"]
    assert cause["saved"] is cause["within"] is cause["call_s"] is None
    assert "used up to 0.5 cores" in cause["disturbed"]
    (accepted,) = entry(record(made), accept_disturbed=True)["causes"]
    assert accepted["provisional"] and accepted["within"]


def test_what_could_not_be_built_has_a_reason_and_no_numbers() -> None:
    own = record([])
    own.causes[0]["reason"] = "not built: no kernel"
    (cause,) = entry(own)["causes"]
    assert (cause["predicted_low"], cause["predicted_high"]) == pytest.approx((0.004, 0.006))
    assert (cause["reason"], cause["saved"]) == ("not built: no kernel", None)
    assert cause["disturbed"] is None
    found = entry(record(status="failed", reason="operators are not timed on a GPU yet"))
    told = (found["status"], found["reason"], found["causes"])
    assert told == ("failed", "operators are not timed on a GPU yet", [])
