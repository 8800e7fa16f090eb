"""What is known of each variant before its race, and which race for a goal; times are planted."""

import math
import statistics
from pathlib import Path
from typing import Any

import pytest
from accuracy_records import accuracy_record
from disturbed import facts
from latency_records import latency_record, latency_shape, race_settings
from manifests import ENGINE
from raced import HOST
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import write_manifest
from tightrope.decide.finalists import Candidate, Measured, candidates, racing_for, read_measured
from tightrope.errors import ArtifactError
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.latency import DRIFT_SHARE, LOAD_ORDER_STD, LatencyRecord, drift_std
from tightrope.statistics import Interval, speedup

BASELINE, QUICK, OTHER = "cpu-pytorch-fp32", "cpu-onnxruntime-fp32", "cpu-openvino-fp32"
OWN = [[0.004 + 0.0001 * (i % 3)] for i in range(12)]
THEIRS = [[0.01 + 0.0001 * (i % 4)] for i in range(12)]


def measured(variant=QUICK, wrong=0, *, judged=True, **shape) -> Measured:
    alone = variant == BASELINE
    own = {"blocks": THEIRS if alone else OWN, "baseline": None if alone else THEIRS}
    identity = {"model": "m", "variant": variant, "host": HOST, "libraries": {}}
    answers = {"labels": [0] * 1000, "predictions": [1] * wrong + [0] * (1000 - wrong)}
    accuracy = accuracy_record(**identity, data_sha256="d", **(answers if judged else {}))
    latency = latency_record(variant, latency_shape(**{**own, **shape}))
    return Measured(Path("engine.json"), latency, accuracy, 100)


def found(*every: Measured, accept_disturbed: bool = False) -> dict[str, Any]:
    by_name = {one.latency.variant: one for one in every}
    race = race_settings(BASELINE, accept_disturbed=accept_disturbed)
    known = candidates(by_name, race, 0)
    return {one.variant: one for one in known}


def test_each_has_its_speed_up_of_undisturbed_pairs() -> None:
    known = found(measured(BASELINE), measured())
    exact = speedup(OWN, THEIRS, loads=1, unsteady=LOAD_ORDER_STD)
    assert (known[QUICK].speedup, known[BASELINE].speedup) == (exact, Interval(1.0, 1.0, 1.0))
    wild = {"blocks": [[9.0]] * 3 + OWN, "baseline": [[1.0]] * 3 + THEIRS}
    assert found(measured(**wild, **facts(3, 12)))[QUICK].speedup == exact
    # with too few of them it is no candidate, unless that is accepted
    for name in (BASELINE, QUICK):
        one = measured(name, **facts(8, 4))
        assert found(one) == {}
        assert set(found(one, accept_disturbed=True)) == {name}


def test_each_has_what_a_goal_may_bound() -> None:
    one = measured(blocks=[[0.002] * 100] * 12, baseline=[[0.004] * 100] * 12)
    one.latency.peak_rss_bytes, one.latency.shapes[0].energy_j = 9 * 10**8, [100.0] * 12
    known = found(measured(BASELINE), one)
    assert known[QUICK][3:] == (pytest.approx(2.0), 900, pytest.approx(1.0))
    assert known[BASELINE][3:] == (None, None, None), "too few calls"


def test_the_interval_holds_what_the_machine_changed_from_job_to_job() -> None:
    """Its own pairs are as before; the baseline took longer and shorter beside others."""
    others = [
        measured(f"cpu-openvino-{name}", baseline=[[one * scale] for (one,) in THEIRS])
        for name, scale in (("fp32", 1.3), ("bf16", 0.8))
    ]
    for one in (*others, quick := measured()):
        one.latency.baseline = BASELINE
    known = found(measured(BASELINE), quick, *others)
    spread = statistics.stdev([0.0, 0.0, math.log(1.3), math.log(0.8)])
    expected = speedup(OWN, THEIRS, loads=1, unsteady=drift_std(spread, 1))
    assert known[QUICK].speedup == pytest.approx(expected)
    assert expected.high / expected.value > math.exp(1.9 * DRIFT_SHARE * spread)


def test_each_has_the_verdict_on_its_accuracy() -> None:
    for wrong, verdict in ((0, "kept"), (12, "undecided"), (100, "dropped")):
        known = found(measured(BASELINE), measured(wrong=wrong))
        assert [known[name].verdict for name in (BASELINE, QUICK)] == ["kept", verdict]
    # not evaluated, and with nothing to compare it with
    assert found(measured(judged=False))[QUICK].verdict == "kept"
    assert found(measured())[QUICK].verdict == "undecided"


def test_without_times_of_the_baseline_beside_them_those_of_other_minutes_are_compared() -> None:
    slow = measured(blocks=[[0.01]] * 12, baseline=None)
    fast = measured(OTHER, blocks=[[0.005]] * 12, baseline=None)
    known = found(slow, fast)
    assert known[QUICK].speedup == pytest.approx((100, 80, 125)), "calls per second"
    assert known[OTHER].speedup.value == pytest.approx(200)
    # on the scale of the others where the baseline was measured alone
    known = found(measured(BASELINE, blocks=[[0.02]] * 12), measured("cpu-tvm-fp32"), slow)
    assert known[QUICK].speedup == pytest.approx((2.0, 1.6, 2.5))
    assert known["cpu-tvm-fp32"].speedup.value > 2.4


def write(folder: Path, variant: str, failed: Any = None, other: Any = None) -> tuple[Path, ...]:
    """An engine with its records, of which one has failed or is of another engine."""
    folder.mkdir(exist_ok=True)
    (folder / "weights").write_bytes(b"x" * 70)
    engine = folder / "engine.json"
    write_manifest(engine, **{**ENGINE, "variant": variant})
    paths = [engine]
    for record in measured(variant)[1:3]:
        record.status = "failed" if type(record) is failed else "ok"
        record.engine_sha256 = "0" * 64 if type(record) is other else sha256(engine)
        paths.append(folder / f"{type(record).__name__}.json")
        record.write(paths[-1])
    return tuple(paths)


def test_failed_variants_and_records_of_other_engines_are_left_out(tmp_path: Path) -> None:
    every = {BASELINE: None, QUICK: LatencyRecord, OTHER: AccuracyRecord}
    paths = [write(tmp_path / name, name, failed) for name, failed in every.items()]
    known, reason = read_measured(*zip(*paths, strict=True))
    assert (list(known), reason) == ([BASELINE], f"{QUICK}: None")
    assert known[BASELINE].size_bytes == 70
    assert known[BASELINE].engine == tmp_path / BASELINE / "engine.json"
    for kind in (LatencyRecord, AccuracyRecord):
        others = write(tmp_path / kind.__name__, QUICK, other=kind)
        with pytest.raises(ArtifactError, match=rf"{kind.__name__}\.json: measured with another"):
            read_measured(*([one] for one in others))


def racing(goal: dict[str, Any], verdict: str = "kept", **changes: Any) -> str:
    """Of `fast`, which takes 900 MB and 1 J, and `slow`, which takes 300 MB and 3 J."""
    fast = Candidate("fast", Interval(2.0, 1.9, 2.1), verdict, 2.0, 900, 1.0)._replace(**changes)
    slow = Candidate("slow", Interval(2.0, 1.9, 2.1), verdict, 4.0, 300, 3.0)
    bounds = {"minimize": "time", "p99_ms": None, "memory_mb": None, **goal}
    return " ".join(one.variant for one in racing_for(bounds, [fast, slow]))


def test_those_that_meet_the_bounds_of_a_goal_race_for_it() -> None:
    # for time all within all bounds
    assert racing({}) == "fast slow"
    assert racing({"p99_ms": 3.0}) == "fast"
    assert racing({"memory_mb": 500}) == "slow"
    assert racing({"p99_ms": 100.0}, p99_ms=None) == "slow"
    assert racing({}, verdict="undecided") == ""
    # for memory and energy the one with the least
    assert racing({"minimize": "memory"}) == "slow"
    assert racing({"minimize": "memory", "p99_ms": 3.0}) == "fast"
    assert racing({"minimize": "energy"}) == "fast"
    assert racing({"minimize": "energy"}, energy_j=None) == "slow"
    assert racing({"minimize": "energy", "memory_mb": 100}) == ""
