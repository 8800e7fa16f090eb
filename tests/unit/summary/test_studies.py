"""What summary.json says of what is measured on request, from records with planted times."""

from typing import Any

import msgspec
import pytest
from raced import HOST
from tightrope.machine.host import fingerprint
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.idleness import FEWEST, IdlenessRecord
from tightrope.records.profile import CausesRecord, ProfileRecord
from tightrope.records.record import FEWEST_ROUNDS
from tightrope.records.throughput import ThroughputRecord
from tightrope.summary.causes import Causes, causes_entry
from tightrope.summary.idleness import Idleness, idleness_entry
from tightrope.summary.profile import LONGEST, Profile, profile_entry
from tightrope.summary.throughput import TOO_SLOW, Throughput, throughput_entry

SHAPE = {"batch": 1, "sequence": 64}
STUDIES = {
    CausesRecord: (causes_entry, Causes, "causes"),
    IdlenessRecord: (idleness_entry, Idleness, "pauses"),
    ProfileRecord: (profile_entry, Profile, "shapes"),
    ThroughputRecord: (throughput_entry, Throughput, "points"),
}


def recorded(kind: Any, **fields: Any) -> Any:
    """A record of a study of a variant of model m."""
    known = {"model": "m", "variant": "cpu-onnxruntime-fp32", "host": HOST, "libraries": {}}
    work = {} if kind is ThroughputRecord else {"threads": 2}
    pinned = {} if kind is ProfileRecord else {"processors": [0, 1]}
    return kind(**{**known, **work, **pinned, **fields})


def entry(record: Any, **settings: Any) -> Any:
    """Its entry, which is of its type."""
    make, kind, _ = STUDIES[type(record)]
    found = make(record, **settings)
    assert msgspec.convert(found, kind) == found
    return found


@pytest.mark.parametrize("kind", STUDIES)
def test_what_failed_keeps_its_reason_and_has_no_rows(kind: Any) -> None:
    empty = {
        CausesRecord: {"causes": []},
        IdlenessRecord: {"shape": SHAPE, "plan": PAUSES, "calls": []},
        ProfileRecord: {"peaks": PEAKS, "shapes": []},
        ThroughputRecord: {"plan": BATCHES, "cores": 2, "sequence": 64, "points": []},
    }[kind]
    found = entry(recorded(kind, status="failed", reason="not built: no room", **empty))
    told = (found["status"], found["reason"], found[STUDIES[kind][2]])
    assert told == ("failed", "not built: no room", [])
    assert found["host"] == fingerprint(HOST)


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
    (cause,) = entry(record, **settings)["causes"]
    return cause


def test_a_saving_has_an_interval_and_meets_or_misses_its_prediction() -> None:
    cause = caused(rounds(0.010, 0.0075))
    assert cause["call_s"] == pytest.approx(0.0101, rel=0.01)
    saved = cause["saved"]
    assert saved["value"] == pytest.approx(0.0025, rel=0.02)
    assert saved["low"] < saved["value"] < saved["high"]
    predicted = cause["predicted_low"], cause["predicted_high"]
    assert predicted == pytest.approx((0.002, 0.003), rel=0.02)
    assert (cause["within"], cause["rounds"], cause["disturbed"]) == (True, 12, None)
    # less, more or nothing saved misses the prediction
    for without in (0.0095, 0.005, 0.012):
        cause = caused(rounds(0.010, without))
        assert cause["within"] is False
        assert (cause["saved"]["value"] < 0) == (without > 0.010)


def test_disturbed_rounds_do_not_count_unless_accepted_and_what_was_not_built_has_a_reason():
    made = rounds(0.01, 0.0075, FEWEST_ROUNDS - 1) + rounds(0.01, 0.0075, 9, foreign=0.5)
    cause = caused(made)
    assert cause["saved"] is cause["within"] is cause["call_s"] is None
    assert "used up to 0.5 cores" in cause["disturbed"]
    accepted = caused(made, accept_disturbed=True)
    assert accepted["provisional"] and accepted["within"]
    cause = caused([], reason="not built: no kernel")
    assert (cause["predicted_low"], cause["predicted_high"]) == pytest.approx((0.004, 0.006))
    assert (cause["reason"], cause["saved"]) == ("not built: no kernel", None)
    assert cause["disturbed"] is None


# the first call after a pause

PAUSES = {"pauses": [1, 0.1], "max_seconds": 120}


def calls(pause: float, ratio: float, count: int = 9, *, foreign: float = 0.0) -> list[Any]:
    known = {"pause_s": pause, "paused_s": pause, "block_s": [0.01] * 3, "foreign_cores": foreign}
    return [{**known, "call_s": 0.01 * ratio * (1 + 0.01 * (n % 3))} for n in range(count)]


def idle(*made: list[Any], busiest: Any = None, **settings: Any) -> Any:
    """The entries of both pauses, the short one first."""
    every = [call for some in made for call in some]
    given = {"busiest": busiest or {}, "shape": SHAPE, "plan": PAUSES, "calls": every}
    found = entry(recorded(IdlenessRecord, **given), **settings)
    assert found["shape"] == SHAPE
    return found["pauses"]


def test_each_pause_has_its_first_call_and_whether_it_matters() -> None:
    short, long = idle(calls(1, 1.5), calls(0.1, 1.02))
    assert (short["pause_s"], long["pause_s"]) == (0.1, 1)
    assert long["first_call_s"] == pytest.approx(0.01515)
    assert long["slowdown"]["ratio"] == pytest.approx(1.515, rel=0.01)
    assert 1.10 < long["slowdown"]["low"] < long["slowdown"]["high"]
    assert (short["slowdown"]["matters"], long["slowdown"]["matters"]) == (False, True)
    assert (long["calls"], long["disturbed_calls"], long["reason"]) == (9, 0, None)
    # one whose interval reaches ten percent does not matter
    times = zip(calls(1, 1, 6), [0.011, 0.02] * 3, strict=True)
    _, long = idle([{**one, "call_s": seconds} for one, seconds in times])
    assert long["slowdown"]["ratio"] > 1.10
    assert not long["slowdown"]["matters"]
    # each is compared with the block before it, in a machine that changes its speed
    twice = [{**one, "call_s": 0.024, "block_s": [0.02] * 3} for one in calls(1, 1, 4)]
    _, long = idle(calls(1, 1.2 / 1.01, 4), twice)
    assert long["slowdown"]["ratio"] == pytest.approx(1.2, rel=0.02)
    _, long = idle(calls(1, 1.0, 14), calls(1, 30, 1))
    assert 1.0 < long["slowdown"]["ratio"] < long["slowdown"]["high"] < 1.05, "one outlier"
    # disturbed calls do not count where enough are left
    _, long = idle(calls(1, 1.5), calls(1, 9.0, 3, foreign=0.5))
    assert (long["calls"], long["disturbed_calls"], long["disturbed"]) == (9, 3, None)
    assert long["slowdown"]["ratio"] == pytest.approx(1.515, rel=0.01)


def test_with_too_few_undisturbed_calls_there_is_no_number_unless_it_is_accepted() -> None:
    made = calls(1, 1.5, FEWEST - 1), calls(1, 1.5, 3, foreign=0.5)
    _, long = idle(*made, busiest={"cc1": 0.5})
    assert long["first_call_s"] is long["slowdown"] is None
    assert long["disturbed"].startswith("other programs or the hypervisor used up to 0.5 cores")
    assert "pauses of 1 s; the busiest: cc1" in long["disturbed"]
    assert not long["provisional"]
    _, accepted = idle(*made, accept_disturbed=True)
    assert (accepted["provisional"], accepted["calls"]) == (True, FEWEST + 2)
    assert accepted["slowdown"]["ratio"] == pytest.approx(1.515, rel=0.01)
    _, long = idle(calls(0.1, 1.0), calls(1, 1.5, 2))
    assert long["slowdown"] is long["disturbed"] is None
    assert long["reason"] == "only 2 calls within max_seconds = 120; an interval needs 5"


# profiles

PEAKS = {"operations_per_s": {"fp32": 4e9, "int8": 1.6e10}, "copy_bytes_per_s": 1e9}
PRODUCTS = {
    **{"seconds": 0.01, "operations": 2e7, "bytes": 1e4, "count": 10},
    "types": {"int8": 0.008, "fp32": 0.002},
}
OPERATOR = {
    **{"kind": "MatMul", "group": "products", "type": "int8"},
    **{"seconds": 0.001, "operations": 2e6, "bytes": 1e3},
}
CALL = {
    **{**SHAPE, "call_s": 0.008, "padding": 0.5, "bound": "compute"},
    **{"outside_s": 0.0, "profiler_factor": 0.8, "groups": {"products": PRODUCTS}},
    "operators": [{**OPERATOR, "name": f"layer.{number}"} for number in range(10)],
    "around": {"prepare_s": 0.001, "finish_s": 0.001},
    "model": {"operations": 8e6, "least_bytes": 1e6, "groups": {"products": 8e6}},
    "shares": {"compute": 0.7, "memory": 0.2, "overhead": 0.1},
}


def profiled(call: Any = CALL, **changes: Any) -> Any:
    """The entry of a profile, and that of its only shape."""
    found = entry(recorded(ProfileRecord, peaks=PEAKS, shapes=[call], **changes))
    (shape,) = found["shapes"]
    return found, shape


def test_times_are_scaled_to_the_call_that_was_timed_without_a_profiler() -> None:
    found, call = profiled()
    assert (call["batch"], call["sequence"], call["height"]) == (1, 64, None)
    (group,) = call["groups"]
    assert (group["seconds"], group["share"]) == pytest.approx((0.008, 1.0))
    assert (group["operations"], group["count"]) == (2e7, 10)
    assert group["types"] == pytest.approx({"int8": 0.8, "fp32": 0.2})
    assert (call["padding"], found["emulated"]) == (0.5, None)
    assert len(call["operators"]) == LONGEST
    first = call["operators"][0]
    assert (first["seconds"], first["share"]) == pytest.approx((0.0008, 0.1))
    # what goes around the call limits a faster engine
    assert (call["prepare_s"], call["finish_s"]) == (0.001, 0.001)
    assert call["ceiling"] == pytest.approx((0.008 + 0.002) / 0.002)


def test_what_is_not_known_of_a_call_is_null() -> None:
    known = {key: value for key, value in CALL.items() if key != "model"}
    around = {"prepare_s": None, "finish_s": 0.001}
    _, call = profiled({**known, "around": around, "outside_s": 0.002, "profiler_factor": 1.0})
    assert call["prepare_s"] is call["ceiling"] is call["roofline"] is None
    assert (call["finish_s"], call["outside"]) == (0.001, pytest.approx(0.25))
    # without a profiler only the call
    _, call = profiled({**SHAPE, "call_s": 0.004}, unprofiled="not timed on a GPU yet")
    assert call["call_s"] == 0.004
    assert call["bound"] is call["shares"] is call["outside"] is None
    assert call["groups"] == call["operators"] == []


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
    point = profiled(variant=variant)[1]["roofline"]
    assert point["operations_per_s"] == pytest.approx(1e9)
    assert (point["type"], point["peak_per_s"], point["roof_per_s"]) == (kind, peak, roof)


# throughput of several instances

BATCHES = {"batches": [1, 4], "p99_ms": None}
NAMES = ("instances", "threads", "batch")


def place(instances: int, threads: int, batch: int, **told: Any) -> dict[str, Any]:
    return {"instances": instances, "threads": threads, "batch": batch, **told}


def point(instances, threads, batch, call_s, *, foreign=0.0, calls=9):
    """A point whose blocks differ by a percent, all calls of a block alike."""
    blocks = [[call_s * (1 + 0.01 * (number % 3))] * calls for number in range(10)]
    return {
        **place(instances, threads, batch, skipped=False, reason=None, seconds=2.0),
        **{"blocks_s": [blocks] * instances, "foreign_cores": foreign},
        **dict.fromkeys(("waited_s", "late_s"), [0.0] * instances),
        "peak_rss_bytes": 1000 * instances,
    }


def rated(points: list[Any], p99_ms: Any = None, busiest: Any = None, **settings: Any) -> Any:
    known = {"plan": {**BATCHES, "p99_ms": p99_ms}, "cores": 2, "sequence": 64}
    record = recorded(ThroughputRecord, **known, busiest=busiest or {}, points=points)
    return entry(record, **settings)


def place_of(point: Any) -> tuple[int, ...]:
    return tuple(point[name] for name in NAMES)


TIMES = {(1, 2, 1): 0.010, (1, 2, 4): 0.030, (2, 1, 1): 0.016, (2, 1, 4): 0.050}
POINTS = [point(*one, seconds) for one, seconds in TIMES.items()]
UNEVEN = [[[0.01], [], [0.01], [], [], [], [], [], [], []]]


def test_the_best_point_is_compared_with_one_instance_at_its_own_best_batch() -> None:
    found = rated(POINTS)
    best = found["best"]
    assert place_of(best) == (2, 1, 4) and place_of(found["single"]) == (1, 2, 4)
    assert best["samples_per_s"] == pytest.approx(2 * 4 / 0.050, rel=0.02)
    assert best["low"] < best["samples_per_s"] < best["high"]
    assert (best["calls"], best["p99_s"]) == (180, None)
    assert found["gain"]["ratio"] == pytest.approx(160 / (4 / 0.030), rel=0.02)
    assert found["gain"]["low"] < found["gain"]["ratio"] < found["gain"]["high"]
    assert found["best_within_bound"] is None, "there is no bound"
    found = rated([*POINTS[:2], point(2, 1, 4, 0.5)])
    assert found["best"] == found["single"] and found["gain"] is None
    # rates of instances add up in the blocks in which each ended a call
    two = [[[0.1, 0.1]] * 4 + [[0.3]], [[0.2]] * 4 + [[]]]
    (found,) = rated([{**POINTS[3], "blocks_s": two}])["points"]
    assert found["samples_per_s"] == pytest.approx(60)
    # no rate is below zero, however wide its interval is
    seconds = [0.001, 0.001, 0.001, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0]
    uneven = {**POINTS[0], "blocks_s": [[[one] * 9 for one in seconds]]}
    (found,) = rated([uneven])["points"]
    assert found["low"] == 0.0 < found["samples_per_s"] < found["high"]


def test_only_a_point_with_a_known_p99_is_within_the_bound() -> None:
    points = [point(1, 2, 1, 0.010, calls=70), point(1, 2, 4, 0.030, calls=70), POINTS[3]]
    found = rated(points, p99_ms=20)
    assert (found["p99_bound_s"], place_of(found["best"])) == (0.02, (2, 1, 4))
    assert place_of(found["best_within_bound"]) == (1, 2, 1)
    assert found["points"][0]["p99_s"] == pytest.approx(0.0102)
    wide = rated(points, p99_ms=1000)
    assert place_of(wide["best_within_bound"]) == (1, 2, 4), "the best has too few calls"


def test_a_disturbed_point_has_no_numbers_unless_they_are_accepted() -> None:
    points = [POINTS[0], point(2, 1, 1, 0.001, foreign=MAX_FOREIGN_CORES + 0.5)]
    found = rated(points, busiest={"java": 0.6})
    assert place_of(found["best"]) == (1, 2, 1)
    disturbed = found["points"][1]
    assert disturbed["samples_per_s"] is None and not disturbed["provisional"]
    assert "used up to 0.6 cores" in disturbed["disturbed"] and "java" in disturbed["disturbed"]
    accepted = rated(points, accept_disturbed=True)
    assert place_of(accepted["best"]) == (2, 1, 1) and accepted["best"]["provisional"]
    # one without calls is no failure of its own
    starved = {**POINTS[0], "blocks_s": UNEVEN, "foreign_cores": MAX_FOREIGN_CORES + 0.5}
    (found,) = rated([starved], accept_disturbed=True)["points"]
    assert found["disturbed"] and found["samples_per_s"] is None
    assert (found["reason"], found["provisional"]) == (None, False)


def test_points_without_numbers_keep_their_reasons() -> None:
    lost = place(2, 1, 1, reason="out of memory", skipped=False)
    skipped = place(4, 1, 1, reason="needs 4 cores, there are 2", skipped=True)
    found = rated([{**POINTS[0], "blocks_s": UNEVEN}, lost, skipped])
    told = [(one["reason"], one["skipped"]) for one in found["points"]]
    few, many = (lost["reason"], False), (skipped["reason"], True)
    assert told == [(TOO_SLOW, False), few, many]
    assert (found["best"], found["single"], found["gain"]) == (None, None, None)
