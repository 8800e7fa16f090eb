"""What summary.json says of the first call after a pause."""

from typing import Any

import msgspec
import pytest
from raced import HOST
from tightrope.machine.host import fingerprint
from tightrope.records.idleness import FEWEST, IdlenessRecord
from tightrope.summary.idleness import Idleness, idleness_entry

SHAPE = {"batch": 1, "sequence": 64}


def calls(pause: float, ratio: float, count: int = 9, *, foreign: float = 0.0) -> list[Any]:
    return [
        {
            **{"pause_s": pause, "paused_s": pause, "block_s": [0.01, 0.01, 0.01]},
            **{"call_s": 0.01 * ratio * (1 + 0.01 * (number % 3)), "foreign_cores": foreign},
        }
        for number in range(count)
    ]


def record(*made: list[Any], **changes: Any) -> IdlenessRecord:
    known = {"model": "m", "variant": "cpu-onnxruntime-fp32", "host": HOST, "libraries": {}}
    known |= {"threads": 2, "processors": [0, 1], "shape": SHAPE}
    known["calls"] = [call for some in made for call in some]
    plan = {"pauses": [1, 0.1], "max_seconds": 120}
    return IdlenessRecord(**{**known, "plan": plan, **changes})


def test_each_pause_has_its_first_call_and_whether_it_matters() -> None:
    found = idleness_entry(record(calls(1, 1.5), calls(0.1, 1.02)))
    assert msgspec.convert(found, Idleness) == found
    assert (found["host"], found["shape"]) == (fingerprint(HOST), SHAPE)
    assert found["back_to_back_s"] == pytest.approx(0.01)
    short, long = found["pauses"]
    assert (short["pause_s"], long["pause_s"]) == (0.1, 1)
    assert long["first_call_s"] == pytest.approx(0.01515)
    assert long["slowdown"]["ratio"] == pytest.approx(1.515, rel=0.01)
    assert 1.10 < long["slowdown"]["low"] < long["slowdown"]["high"]
    assert (short["slowdown"]["matters"], long["slowdown"]["matters"]) == (False, True)
    assert (long["calls"], long["disturbed_calls"], long["reason"]) == (9, 0, None)
    # one whose interval reaches ten percent does not matter
    times = zip(calls(1, 1, 6), [0.011, 0.02] * 3, strict=True)
    (_, long) = idleness_entry(record([{**one, "call_s": s} for one, s in times]))["pauses"]
    assert long["slowdown"]["ratio"] > 1.10
    assert not long["slowdown"]["matters"]
    # disturbed calls do not count where enough are left
    found = idleness_entry(record(calls(1, 1.5), calls(1, 9.0, 3, foreign=0.5)))
    long = found["pauses"][1]
    assert (long["calls"], long["disturbed_calls"], long["disturbed"]) == (9, 3, None)
    assert long["slowdown"]["ratio"] == pytest.approx(1.515, rel=0.01)


def test_with_too_few_undisturbed_calls_there_is_no_number_unless_it_is_accepted() -> None:
    own = record(calls(1, 1.5, FEWEST - 1), calls(1, 1.5, 3, foreign=0.5), busiest={"cc1": 0.5})
    long = idleness_entry(own)["pauses"][1]
    assert long["first_call_s"] is long["slowdown"] is None
    assert long["disturbed"].startswith("other programs or the hypervisor used up to 0.5 cores")
    assert "pauses of 1 s; the busiest: cc1" in long["disturbed"]
    assert not long["provisional"]
    accepted = idleness_entry(own, accept_disturbed=True)["pauses"][1]
    assert (accepted["provisional"], accepted["calls"]) == (True, FEWEST + 2)
    assert accepted["slowdown"]["ratio"] == pytest.approx(1.515, rel=0.01)


def test_too_short_a_time_is_the_reason_for_no_number() -> None:
    long = idleness_entry(record(calls(0.1, 1.0), calls(1, 1.5, 2)))["pauses"][1]
    assert long["slowdown"] is long["disturbed"] is None
    assert long["reason"] == "only 2 calls within max_seconds = 120; an interval needs 5"
    found = idleness_entry(record(status="failed", reason="not built: no room"))
    assert msgspec.convert(found, Idleness) == found
    assert (found["status"], found["pauses"], found["back_to_back_s"]) == ("failed", [], None)
