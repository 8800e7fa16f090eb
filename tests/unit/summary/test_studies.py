"""What summary.json says of what is measured on request, from records with planted times."""

from typing import Any

import msgspec
import pytest
from raced import HOST, SHAPE
from tightrope.machine.host import fingerprint
from tightrope.records.profile import CausesRecord, ProfileRecord
from tightrope.records.record import FEWEST_ROUNDS
from tightrope.summary.pairs import Causes, causes_entry
from tightrope.summary.profile import LONGEST, Profile, profile_entry

STUDIES = {
    CausesRecord: (causes_entry, Causes, "causes"),
    ProfileRecord: (profile_entry, Profile, "shapes"),
}


def recorded(kind: Any, **fields: Any) -> Any:
    """A record of a study of a variant of model m."""
    known = {"model": "m", "variant": "cpu-onnxruntime-fp32", "host": HOST, "libraries": {}}
    pinned = {} if kind is ProfileRecord else {"processors": [0, 1]}
    return msgspec.convert({**known, "threads": 2, **pinned, **fields}, kind)


def entry(record: Any, **settings: Any) -> Any:
    """Its entry, which is of its type."""
    make, kind, _ = STUDIES[type(record)]
    found = make(record, **settings)
    assert msgspec.convert(msgspec.to_builtins(found), kind) == found
    return found


@pytest.mark.parametrize("kind", STUDIES)
def test_what_failed_keeps_its_reason_and_has_no_rows(kind: Any) -> None:
    empty = {CausesRecord: {"causes": []}, ProfileRecord: {"peaks": PEAKS, "shapes": []}}[kind]
    found = entry(recorded(kind, status="failed", reason="not built: no room", **empty))
    told = (found.status, found.reason, getattr(found, STUDIES[kind][2]))
    assert told == ("failed", "not built: no room", [])
    assert found.host == fingerprint(HOST)


# causes that a setting removes


def rounds(own: float, without: float, count: int = 12, foreign: float = 0.0) -> list[Any]:
    """Rounds in which calls take so long, give or take a percent."""
    blocks = [
        [[one * (1 + 0.01 * (number % 3))] * 3 for one in (own, without)] for number in range(count)
    ]
    return [{"blocks_s": one, "foreign_cores": foreign} for one in blocks]


def caused(made: list[Any], reason: str | None = None, **settings: Any) -> Any:
    """The entry of a cause that is predicted to take 20 to 30 % of a call."""
    words = {"cause": "25 % of the request is padding", "setting": "buckets: {sequence: [96]}"}
    sizes = {"batch": 1, "sequence": 96, "low": 0.2, "high": 0.3, "profiled_s": 0.02}
    record = recorded(CausesRecord, causes=[{**words, **sizes, "reason": reason, "rounds": made}])
    (cause,) = entry(record, **settings).causes
    return cause


def test_a_saving_has_an_interval_and_meets_or_misses_its_prediction() -> None:
    cause = caused(rounds(0.010, 0.0075))
    assert cause.call_s == pytest.approx(0.0101, rel=0.01)
    saved = cause.saved
    assert saved.value == pytest.approx(0.0025, rel=0.02)
    assert saved.low < saved.value < saved.high
    predicted = cause.predicted_low, cause.predicted_high
    assert predicted == pytest.approx((0.002, 0.003), rel=0.02)
    assert (cause.within, cause.rounds, cause.disturbed) == (True, 12, None)
    # less, more or nothing saved misses the prediction
    for without in (0.0095, 0.005, 0.012):
        cause = caused(rounds(0.010, without))
        assert cause.within is False
        assert (cause.saved.value < 0) == (without > 0.010)


def test_disturbed_rounds_do_not_count_unless_accepted_and_what_was_not_built_has_a_reason():
    made = rounds(0.01, 0.0075, FEWEST_ROUNDS - 1) + rounds(0.01, 0.0075, 9, foreign=0.5)
    cause = caused(made)
    assert cause.saved is cause.within is cause.call_s is None
    assert "used up to 0.5 cores" in cause.disturbed
    accepted = caused(made, accept_disturbed=True)
    assert accepted.provisional and accepted.within
    cause = caused([], reason="not built: no kernel")
    assert (cause.predicted_low, cause.predicted_high) == pytest.approx((0.004, 0.006))
    assert (cause.reason, cause.saved) == ("not built: no kernel", None)
    assert cause.disturbed is None


# profiles

SPEEDS = {"operations_per_s": {"fp32": 4e9, "int8": 1.6e10}, "copy_bytes_per_s": 1e9}
PEAKS = {"device": "cpu", "threads": 2, **SPEEDS, "smallest_operator_s": 1e-6}
PRODUCTS = {
    **{"seconds": 0.01, "operations": 2e7, "bytes": 1e4, "count": 10},
    "types": {"int8": 0.008, "fp32": 0.002},
}
OPERATOR = {
    **{"kind": "MatMul", "group": "products", "type": "int8"},
    **{"seconds": 0.001, "operations": 2e6, "bytes": 1e3},
}
CALL = {
    **{**SHAPE.sizes, "call_s": 0.008, "padding": 0.5, "bound": "compute"},
    **{"outside_s": 0.0, "profiler_factor": 0.8, "groups": {"products": PRODUCTS}},
    "operators": [{**OPERATOR, "name": f"layer.{number}"} for number in range(10)],
    **{"prepare_s": 0.001, "finish_s": 0.001},
    "work": {"operations": 8e6, "groups": {"products": 8e6}, "weights": 0, "other_bytes": 1e6},
    "shares": {"compute": 0.7, "memory": 0.2, "overhead": 0.1},
}


def profiled(call: Any = CALL, **changes: Any) -> Any:
    """The entry of a profile, and that of its only shape."""
    found = entry(recorded(ProfileRecord, peaks=PEAKS, shapes=[call], **changes))
    (shape,) = found.shapes
    return found, shape


def test_times_are_scaled_to_the_call_that_was_timed_without_a_profiler() -> None:
    found, call = profiled()
    assert call.shape == SHAPE
    (group,) = call.groups
    assert (group.seconds, group.share) == pytest.approx((0.008, 1.0))
    assert (group.operations, group.count) == (2e7, 10)
    assert group.types == pytest.approx({"int8": 0.8, "fp32": 0.2})
    assert (call.padding, found.emulated) == (0.5, None)
    assert len(call.operators) == LONGEST
    first = call.operators[0]
    assert (first.seconds, first.share) == pytest.approx((0.0008, 0.1))
    # what goes around the call limits a faster engine
    assert (call.prepare_s, call.finish_s) == (0.001, 0.001)
    assert call.ceiling == pytest.approx((0.008 + 0.002) / 0.002)


def test_what_is_not_known_of_a_call_is_null() -> None:
    known = {key: value for key, value in CALL.items() if key != "work"}
    around = {"prepare_s": None, "finish_s": 0.001}
    _, call = profiled({**known, **around, "outside_s": 0.002, "profiler_factor": 1.0})
    assert call.prepare_s is call.ceiling is call.roofline is None
    assert (call.finish_s, call.outside) == (0.001, pytest.approx(0.25))
    # without a profiler only the call
    plain = {**SHAPE.sizes, "call_s": 0.004, "padding": 0.0, **around}
    _, call = profiled(plain, unprofiled="no profiler")
    assert call.call_s == 0.004
    assert call.bound is call.shares is call.outside is None
    assert call.groups == call.operators == []


@pytest.mark.parametrize(
    ("variant", "kind", "peak", "roof"),
    [
        ("cpu-onnxruntime-fp32", "fp32", 4e9, 4e9),
        # 8 operations per byte at a gigabyte per second
        ("cpu-onnxruntime-int8-minmax-8", "int8", 1.6e10, 8e9),
        ("cpu-onnxruntime-given", "int8", 1.6e10, 8e9),
        ("cpu-onnxruntime-fp16", "fp16", None, None),
    ],
)
def test_the_roof_is_the_lower_of_the_peak_and_what_memory_allows(variant, kind, peak, roof):
    point = profiled(variant=variant)[1].roofline
    assert point.operations_per_s == pytest.approx(1e9)
    assert (point.type, point.peak_per_s, point.roof_per_s) == (kind, peak, roof)
