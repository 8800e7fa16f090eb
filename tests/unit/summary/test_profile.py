"""What summary.json says of profiles."""

from typing import Any

import msgspec
import pytest
from raced import HOST
from tightrope.machine.host import fingerprint
from tightrope.records.profile import ProfileRecord
from tightrope.summary.profile import LONGEST, Profile, profile_entry

SHAPE = {"batch": 1, "sequence": 64}
PRODUCTS = {
    **{"seconds": 0.01, "operations": 2e7, "bytes": 1e4, "count": 10},
    "types": {"int8": 0.008, "fp32": 0.002},
}

PEAKS = {"operations_per_s": {"fp32": 4e9, "int8": 1.6e10}, "copy_bytes_per_s": 1e9}


def operator(number: int) -> dict[str, Any]:
    return {
        **{"name": f"layer.{number}", "kind": "MatMul", "group": "products", "type": "int8"},
        **{"seconds": 0.001, "operations": 2e6, "bytes": 1e3},
    }


def record(**changes: Any) -> ProfileRecord:
    shape = {
        **{**SHAPE, "call_s": 0.008, "padding": 0.5, "bound": "compute"},
        **{"outside_s": 0.0, "profiler_factor": 0.8, "groups": {"products": PRODUCTS}},
        "operators": [operator(number) for number in range(10)],
        "around": {"prepare_s": 0.001, "finish_s": 0.001},
        "model": {"operations": 8e6, "least_bytes": 1e6, "groups": {"products": 8e6}},
        "shares": {"compute": 0.7, "memory": 0.2, "overhead": 0.1},
    }
    known = {"model": "m", "variant": "cpu-onnxruntime-fp32", "host": HOST, "libraries": {}}
    return ProfileRecord(**{**known, "threads": 2, "peaks": PEAKS, "shapes": [shape], **changes})


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


def test_what_goes_around_the_call_limits_a_faster_engine_and_may_not_be_known() -> None:
    (call,) = profile_entry(record())["shapes"]
    assert (call["prepare_s"], call["finish_s"]) == (0.001, 0.001)
    assert call["ceiling"] == pytest.approx((0.008 + 0.002) / 0.002)
    shape = {key: value for key, value in record().shapes[0].items() if key != "model"}
    shape |= {"around": {"prepare_s": None, "finish_s": 0.001}}
    shape |= {"outside_s": 0.002, "profiler_factor": 1.0}
    (call,) = profile_entry(record(shapes=[shape]))["shapes"]
    assert call["prepare_s"] is call["ceiling"] is call["roofline"] is None
    assert (call["finish_s"], call["outside"]) == (0.001, pytest.approx(0.25))


def test_without_a_profiler_only_the_call_is_known() -> None:
    why, call = "operators are not timed on a GPU yet", {**SHAPE, "call_s": 0.004}
    found = profile_entry(record(unprofiled=why, shapes=[call]))
    assert msgspec.convert(found, Profile) == found
    (call,) = found["shapes"]
    assert call["call_s"] == 0.004
    assert call["bound"] is call["shares"] is call["outside"] is None
    assert call["groups"] == call["operators"] == []
    found = profile_entry(record(status="failed", reason="not built: no room", shapes=[]))
    told = (found["status"], found["reason"], found["shapes"])
    assert told == ("failed", "not built: no room", [])


@pytest.mark.parametrize(
    ("variant", "kind", "peak", "roof"),
    [
        ("cpu-onnxruntime-fp32", "fp32", 4e9, 4e9),
        # 8 operations per byte at a gigabyte per second
        ("cpu-onnxruntime-int8-minmax-8", "int8", 1.6e10, 8e9),
        ("cpu-onnxruntime-int8-dynamic", "int8", 1.6e10, 8e9),
        ("cpu-onnxruntime-given", "int8", 1.6e10, 8e9),
        ("cpu-onnxruntime-fp16", "fp16", None, None),
    ],
)
def test_the_roof_is_the_lower_of_the_peak_and_what_memory_allows(variant, kind, peak, roof):
    found = profile_entry(record(variant=variant))
    assert msgspec.convert(found, Profile) == found
    point = found["shapes"][0]["roofline"]
    assert point is not None
    assert point["operations_per_s"] == pytest.approx(1e9)
    assert (point["type"], point["peak_per_s"], point["roof_per_s"]) == (kind, peak, roof)
