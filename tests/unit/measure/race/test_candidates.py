"""What is known of each variant before its race, from records with planted times."""

import math
import statistics
from pathlib import Path
from typing import Any

import pytest
from accuracy_records import accuracy_record
from disturbed import facts
from manifests import ENGINE
from raced import HOST
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import write_manifest
from tightrope.errors import ArtifactError
from tightrope.measure.race.candidates import Measured, candidates, read_measured
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.machine_speed import DRIFT_SHARE, LOAD_ORDER_STD, drift_std
from tightrope.statistics import Interval, speedup

BASELINE, QUICK = "cpu-pytorch-fp32", "cpu-onnxruntime-fp32"
OWN = [[0.004 + 0.0001 * (i % 3)] for i in range(12)]
THEIRS = [[0.01 + 0.0001 * (i % 4)] for i in range(12)]


def measured(
    variant: str = QUICK, wrong: int = 0, *, judged: bool = True, **shape: Any
) -> Measured:
    alone = variant == BASELINE
    own = {"blocks_s": THEIRS if alone else OWN, "baseline_blocks_s": None if alone else THEIRS}
    identity = {"model": "m", "variant": variant, "host": HOST, "libraries": {}}
    latency = LatencyRecord(
        **identity,
        threads=1,
        plan={"pairs": 12, "loads": 1},
        processors=[0],
        shapes=[{"batch": 1, "sequence": 64, **own, **facts(0, 12), **shape}],
    )
    answers = {"labels": [0] * 1000, "predictions": [1] * wrong + [0] * (1000 - wrong)}
    accuracy = accuracy_record(**identity, data_sha256="d", **(answers if judged else {}))
    return Measured(Path("engine.json"), latency, accuracy, 100)


def found(*every: Measured, accept_disturbed: bool = False) -> dict[str, Any]:
    by_name = {one.latency.variant: one for one in every}
    known = candidates(by_name, BASELINE, 0.01, accept_disturbed, 0)
    return {one.variant: one for one in known}


def test_each_has_its_speed_up_over_the_baseline_which_has_one() -> None:
    known = found(measured(BASELINE), measured())
    assert known[QUICK].speedup == speedup(OWN, THEIRS, loads=1, unsteady=LOAD_ORDER_STD)
    assert known[BASELINE].speedup == Interval(1.0, 1.0, 1.0)


def test_the_interval_holds_what_the_machine_changed_from_job_to_job() -> None:
    """Its own pairs are as before; the baseline took longer and shorter beside others."""
    others = {
        f"cpu-openvino-{name}": measured(
            f"cpu-openvino-{name}", baseline_blocks_s=[[one * scale] for (one,) in THEIRS]
        )
        for name, scale in (("fp32", 1.3), ("bf16", 0.8))
    }
    for one in (*others.values(), quick := measured()):
        one.latency.baseline = BASELINE
    known = found(measured(BASELINE), quick, *others.values())
    spread = statistics.stdev([0.0, 0.0, math.log(1.3), math.log(0.8)])
    expected = speedup(OWN, THEIRS, loads=1, unsteady=drift_std(spread, 1))
    assert known[QUICK].speedup == pytest.approx(expected)
    assert expected.high / expected.value > math.exp(1.9 * DRIFT_SHARE * spread)


@pytest.mark.parametrize(("wrong", "verdict"), [(0, "kept"), (12, "undecided"), (100, "dropped")])
def test_each_has_the_verdict_on_its_accuracy(wrong: int, verdict: str) -> None:
    known = found(measured(BASELINE), measured(wrong=wrong))
    assert (known[QUICK].verdict, known[BASELINE].verdict) == (verdict, "kept")


def test_what_was_not_judged_is_kept_and_what_cannot_be_compared_is_undecided() -> None:
    assert found(measured(judged=False))[QUICK].verdict == "kept"
    assert found(measured())[QUICK].verdict == "undecided"


@pytest.mark.parametrize("name", [BASELINE, QUICK])
def test_a_disturbed_one_is_no_candidate_unless_that_is_accepted(name: str) -> None:
    one = measured(name, **facts(8, 4))
    assert found(one) == {}
    assert set(found(one, accept_disturbed=True)) == {name}


def test_only_undisturbed_pairs_make_the_speed_up() -> None:
    wild = [[9.0]] * 3
    one = measured(blocks_s=wild + OWN, baseline_blocks_s=[[1.0]] * 3 + THEIRS, **facts(3, 12))
    assert found(one)[QUICK].speedup == speedup(OWN, THEIRS, loads=1, unsteady=LOAD_ORDER_STD)


def test_without_any_baseline_the_calls_per_second_are_compared() -> None:
    other = "cpu-openvino-fp32"
    known = found(
        measured(blocks_s=[[0.01]] * 12, baseline_blocks_s=None),
        measured(other, blocks_s=[[0.005]] * 12, baseline_blocks_s=None),
    )
    assert known[QUICK].speedup == pytest.approx((100, 80, 125))
    assert known[other].speedup.value == pytest.approx(200)


def test_one_whose_baseline_failed_beside_it_is_on_the_scale_of_the_others() -> None:
    """The baseline was measured alone, and beside a third one."""
    third = "cpu-openvino-fp32"
    known = found(
        measured(BASELINE, blocks_s=[[0.01]] * 12),
        measured(third),
        measured(blocks_s=[[0.005]] * 12, baseline_blocks_s=None),
    )
    assert known[QUICK].speedup == pytest.approx((2.0, 1.6, 2.5))
    assert known[third].speedup.value > known[QUICK].speedup.value


def test_failed_variants_are_not_among_those_that_were_measured(tmp_path: Path) -> None:
    paths: list[list[Path]] = [[], [], []]
    for name, failing in ((BASELINE, None), (QUICK, 0), ("cpu-openvino-fp32", 1)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "weights").write_bytes(b"x" * 70)
        write_manifest(folder / "engine.json", **{**ENGINE, "variant": name})
        records = measured(name)[1:3]
        if failing is not None:
            records[failing].status = "failed"
        for record, kind in zip(records, ("latency", "accuracy"), strict=True):
            record.engine_sha256 = sha256(folder / "engine.json")
            record.write(folder / f"{kind}.json")
        for place, kind in enumerate(("engine", "latency", "accuracy")):
            paths[place].append(folder / f"{kind}.json")
    known = read_measured(*paths)
    assert list(known) == [BASELINE]
    assert known[BASELINE].size_bytes == 70
    assert known[BASELINE].engine == tmp_path / BASELINE / "engine.json"


@pytest.mark.parametrize("kind", [LatencyRecord, AccuracyRecord])
def test_a_record_of_another_engine_is_refused(tmp_path: Path, kind: type[Any]) -> None:
    engine = tmp_path / "engine.json"
    write_manifest(engine, **{**ENGINE, "variant": QUICK})
    for record in measured(QUICK)[1:3]:
        record.engine_sha256 = "0" * 64 if isinstance(record, kind) else sha256(engine)
        record.write(tmp_path / f"{type(record).__name__}.json")
    paths = [[tmp_path / f"{one.__name__}.json"] for one in (LatencyRecord, AccuracyRecord)]
    with pytest.raises(
        ArtifactError, match=rf"{kind.__name__}\.json: measured with another engine"
    ):
        read_measured([engine], *paths)
