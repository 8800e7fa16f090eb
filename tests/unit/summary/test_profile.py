"""What summary.json says of profiles."""

from typing import Any

import msgspec
import pytest
from raced import HOST
from tightrope.machine.host import fingerprint
from tightrope.records.profile import ProfileRecord
from tightrope.summary.profile import LONGEST, profile_entry
from tightrope.summary.profile_types import Profile

SHAPE = {"batch": 1, "sequence": 64}
PRODUCTS = {
    **{"seconds": 0.01, "operations": 2e7, "bytes": 1e4, "count": 10},
    "types": {"int8": 0.008, "fp32": 0.002},
}


def operator(number: int) -> dict[str, Any]:
    return {
        **{"name": f"layer.{number}", "kind": "MatMul", "group": "products", "type": "int8"},
        **{"seconds": 0.001, "operations": 2e6, "bytes": 1e3},
    }


def record(**changes: Any) -> ProfileRecord:
    shape = {
        **SHAPE,
        "call_s": 0.008,
        "operators": [operator(number) for number in range(10)],
        "padding": 0.5,
        "groups": {"products": PRODUCTS},
        "bound": "compute",
        "shares": {"compute": 0.7, "memory": 0.2, "overhead": 0.1},
        "outside_s": 0.0,
        "profiler_factor": 0.8,
    }
    fields = {
        **{"model": "m", "variant": "cpu-onnxruntime-fp32", "host": HOST, "libraries": {}},
        **{"threads": 2, "peaks": {}, "shapes": [shape]},
    }
    return ProfileRecord(**{**fields, **changes})


def test_times_are_scaled_to_the_call_that_was_timed_without_a_profiler() -> None:
    found = profile_entry(record())
    assert msgspec.convert(found, Profile) == found
    assert found["host"] == fingerprint(HOST)
    (call,) = found["shapes"]
    assert (call["batch"], call["sequence"], call["height"]) == (1, 64, None)
    (group,) = call["groups"]
    assert group["seconds"] == pytest.approx(0.008)
    assert group["share"] == pytest.approx(1.0)
    assert (group["operations"], group["count"]) == (2e7, 10)
    assert group["types"] == pytest.approx({"int8": 0.8, "fp32": 0.2})
    assert (call["padding"], found["emulated"]) == (0.5, None)
    assert len(call["operators"]) == LONGEST
    assert call["operators"][0]["seconds"] == pytest.approx(0.0008)
    assert call["operators"][0]["share"] == pytest.approx(0.1)


def test_what_no_operator_takes_is_a_share_of_the_call() -> None:
    shape = {**record().shapes[0], "outside_s": 0.002, "profiler_factor": 1.0}
    (call,) = profile_entry(record(shapes=[shape]))["shapes"]
    assert call["outside"] == pytest.approx(0.25)


def test_without_a_profiler_only_the_call_is_known() -> None:
    found = profile_entry(
        record(unprofiled="operators of tvm are not timed yet", shapes=[{**SHAPE, "call_s": 0.004}])
    )
    assert msgspec.convert(found, Profile) == found
    (call,) = found["shapes"]
    assert call["call_s"] == 0.004
    assert call["bound"] is call["shares"] is call["outside"] is None
    assert call["groups"] == call["operators"] == []


def test_a_failed_profile_keeps_its_reason() -> None:
    found = profile_entry(record(status="failed", reason="not built: no room", shapes=[]))
    assert (found["status"], found["reason"], found["shapes"]) == (
        "failed",
        "not built: no room",
        [],
    )
