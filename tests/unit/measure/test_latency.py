"""Real engines of the tiny model, measured in processes of their own."""

import io
import os
import signal
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from artifact_files import written
from busy import PROCESSORS, busy_child
from disturbed import QUIET
from manifests import ENGINE
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import write_manifest
from tightrope.engines.load import load_engine
from tightrope.errors import ArtifactError, TightropeError
from tightrope.jobs import child
from tightrope.jobs.child import Limits
from tightrope.machine.cores import pinned_processors
from tightrope.measure import latency
from tightrope.measure.fixed_workload import ROUNDS
from tightrope.measure.latency import measure_latency
from tightrope.measure.settings import TimingSettings
from tightrope.records.latency import LatencyRecord
from tightrope.variants import Variant
from tiny_model import (
    LONGEST,
    TinyModel,
    artifacts_of,
    executed_with,
    name_variant,
)

PLAN = {
    "pairs": 4,
    "loads": 2,
    "min_seconds": 0.1,
    "min_calls": 20,
    "width": 1e-9,
    "comparison_seconds": 0.0,
    "calls": None,
    "warmup_seconds": 1.0,
    "warmup_calls": 2,
    "max_seconds": 20.0,
}
SHAPES = [{"batch": 1, "sequence": 16}, {"batch": 4, "sequence": LONGEST}]
BASELINE, QUICK = name_variant("pytorch", "fp32"), name_variant("onnxruntime", "fp32")
EARLIER = Limits(memory_bytes=8e9, seconds=120, last_attempt=False)
Run = Callable[[Any], Any]


def measured(
    model: TinyModel, engine: Path, baseline: Path, folder: Path, variant: Variant, **options: Any
) -> LatencyRecord:
    audit = options.pop("audit", None)
    facts = {
        "shapes": SHAPES,
        "plan": PLAN,
        "quiet_seconds": 0.0,
        "max_sequence": LONGEST,
        "libraries": {"onnxruntime": "1"},
        "terminal": io.StringIO(),
        **options,
    }
    target = folder / "latency.json"
    settings = TimingSettings(execution=executed_with(facts), **facts)
    names = {"model": "tiny", "variant": str(variant)}
    measure_latency(
        artifacts_of(model, engine, "timing"), baseline, target, settings, **names, audit=audit
    )
    return LatencyRecord.read(target)


@pytest.fixture(scope="module")
def engines(built: Callable[[Variant], Path]) -> dict[Variant, Path]:
    return {variant: built(variant) for variant in (BASELINE, QUICK)}


@pytest.fixture(scope="module")
def record(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path_factory: pytest.TempPathFactory
) -> LatencyRecord:
    folder = tmp_path_factory.mktemp("latency")
    return measured(tiny, engines[QUICK], engines[BASELINE], folder, QUICK)


def alone(record: LatencyRecord) -> bool:
    return record.baseline is None and all(
        shape["baseline_blocks_s"] is None and shape["blocks_s"] for shape in record.shapes
    )


def not_built(folder: Path, variant: Variant, reason: str) -> Path:
    path = folder / "lost" / "engine.json"
    path.parent.mkdir()
    failed = {"status": "failed", "reason": reason, "variant": str(variant)}
    write_manifest(path, **{**ENGINE, **failed})
    return path


def dies(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def raises(_: Any) -> None:
    raise RuntimeError("no such operator")


def of_nan(run: Run) -> Run:
    return lambda inputs: np.full_like(run(inputs), np.nan)


def one_class_too_many(run: Run) -> Run:
    return lambda inputs: np.pad(run(inputs), ((0, 0), (0, 1)))


def dies_at_the_second_shape(run: Run) -> Run:
    return lambda inputs: run(inputs) if len(inputs["input_ids"]) == 1 else dies(inputs)


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, Callable[[Run], Run]], None]:
    """Has the engine in that path, and no other, loaded with its `run` replaced."""

    def spoil(path: Path, change: Callable[[Run], Run]) -> None:
        def load(one: Path, **options: Any) -> tuple[Run, dict[str, float]]:
            run, seconds = load_engine(one, **options)
            return change(run) if one == path else run, seconds

        monkeypatch.setattr(latency, "load_engine", load)

    return spoil


def test_a_record_holds_the_plan_and_the_processors_of_both(record: LatencyRecord) -> None:
    assert (record.status, record.reason, record.transient) == ("ok", None, None)
    assert (record.plan, record.threads) == (PLAN, 1)
    assert record.processors == pinned_processors(1)
    assert (record.baseline, record.baseline_failed) == (str(BASELINE), None)


def test_a_record_holds_the_state_of_the_processors_before_and_after(
    record: LatencyRecord,
) -> None:
    assert set(record.reference) == {"before", "after"}
    for state in record.reference.values():
        assert len(state["rounds_s"]) == ROUNDS
        assert len(state["frequency_khz"]) == len(record.processors)
        assert state["load_average"] >= 0


def test_a_record_holds_all_samples_of_all_shapes_beside_the_baselines(
    record: LatencyRecord,
) -> None:
    sizes = [{key: shape[key] for key in ("batch", "sequence")} for shape in record.shapes]
    assert sizes == SHAPES
    for shape in record.shapes:
        for name in ("blocks_s", "baseline_blocks_s"):
            samples = [sample for block in shape[name] for sample in block]
            assert len(shape[name]) == PLAN["pairs"]
            assert len(samples) >= PLAN["min_calls"]
            assert sum(samples) >= 0.8 * PLAN["min_seconds"]
            assert min(samples) > 0
        assert shape["first_call_s"] > 0


def test_each_shape_says_what_disturbed_it_why_it_stopped_and_what_worked(
    record: LatencyRecord,
) -> None:
    for shape in record.shapes:
        assert len(shape["pairs"]) == len(shape["blocks_s"])
        assert all(set(pair) == set(QUIET) for pair in shape["pairs"])
        assert max(pair["window"] for pair in shape["pairs"]) < len(shape["foreign_cores"])
        assert shape["stop"] == "time limit"
        assert shape["seconds"] > 0
        assert [one["calls"] for one in shape["warmups"]] == [PLAN["warmup_calls"]] * 2
        assert shape["threads_busy"] == 1
        assert 0 < shape["cores_used"] < 1.2
        assert shape["idle_share"] >= 0


def test_a_record_says_what_other_load_cost_and_who_was_the_loudest(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path
) -> None:
    terminal = io.StringIO()
    with busy_child(pinned_processors(1)[0]):
        options = {"quiet_seconds": 1.5, "terminal": terminal, "shapes": SHAPES[:1]}
        paths = (engines[QUICK], engines[BASELINE])
        found = measured(tiny, *paths, tmp_path, QUICK, **options)
    assert found.status == "ok"
    assert found.lost_s >= 1.5
    assert any(name.startswith("python") for name in found.busiest)
    assert terminal.getvalue().startswith("waiting for a quiet machine: ")


def test_load_first_call_and_memory_are_results_of_their_own(
    record: LatencyRecord, engines: dict[Variant, Path]
) -> None:
    assert record.import_s > 0
    assert record.load_s > 0
    assert record.first_call_s == record.shapes[0]["first_call_s"]
    assert 30e6 < record.peak_rss_bytes < 4e9
    assert record.engine_sha256 == sha256(engines[QUICK])
    assert record.threads == 1


def test_more_tokens_take_more_time(record: LatencyRecord) -> None:
    """16 tokens and 256: what is timed is the engine with that shape."""
    short, long = (
        statistics.median(sample for block in shape["blocks_s"] for sample in block)
        for shape in record.shapes
    )
    assert long > 2 * short


def test_the_baselines_own_record_has_no_baseline_and_none_that_failed(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path
) -> None:
    engine = engines[BASELINE]
    found = measured(tiny, engine, engine, tmp_path, BASELINE, shapes=SHAPES[:1])
    assert (found.status, found.baseline_failed) == ("ok", None)
    assert alone(found)


def test_where_the_baseline_was_not_built_the_variant_is_measured_alone(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path
) -> None:
    lost = not_built(tmp_path, BASELINE, "no memory")
    found = measured(tiny, engines[QUICK], lost, tmp_path, QUICK, shapes=SHAPES[:1])
    assert (found.status, found.baseline_failed) == ("ok", "not built: no memory")
    assert alone(found)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda run: dies, "baseline killed by SIGKILL (out of memory, or from outside)"),
        (lambda run: raises, "baseline RuntimeError: no such operator"),
        (of_nan, "baseline gives logits that are not numbers"),
        (
            one_class_too_many,
            "baseline gives outputs of shape [1, 4] in the place of [1, 3]",
        ),
        (
            dies_at_the_second_shape,
            "baseline killed by SIGKILL (out of memory, or from outside)",
        ),
    ],
    ids=["dies", "raises", "nan", "shape", "dies-at-the-second-shape"],
)
def test_where_the_baseline_fails_the_variant_is_measured_alone(
    tiny: TinyModel,
    engines: dict[Variant, Path],
    tmp_path: Path,
    spoil: Any,
    change: Any,
    reason: str,
) -> None:
    spoil(engines[BASELINE], change)
    shapes = SHAPES if change is dies_at_the_second_shape else SHAPES[:1]
    paths = (engines[QUICK], engines[BASELINE])
    found = measured(tiny, *paths, tmp_path, QUICK, shapes=shapes)
    assert (found.status, found.reason, found.transient) == ("ok", None, None)
    assert found.baseline_failed == reason
    assert [shape["batch"] for shape in found.shapes] == [shape["batch"] for shape in shapes]
    assert alone(found)


def test_a_baseline_that_dies_is_tried_again_before_the_variant_is_measured_alone(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path, spoil: Any
) -> None:
    spoil(engines[BASELINE], lambda run: dies)
    paths = (engines[QUICK], engines[BASELINE])
    with pytest.raises(TightropeError, match=r"baseline killed by .*; another attempt follows"):
        measured(tiny, *paths, tmp_path, QUICK, limits=EARLIER)
    assert not (tmp_path / "latency.json").exists()


def test_a_baseline_with_wrong_outputs_is_not_tried_again(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path, spoil: Any
) -> None:
    spoil(engines[BASELINE], of_nan)
    paths = (engines[QUICK], engines[BASELINE])
    found = measured(tiny, *paths, tmp_path, QUICK, shapes=SHAPES[:1], limits=EARLIER)
    assert (found.status, found.baseline) == ("ok", None)
    assert found.baseline_failed == "baseline gives logits that are not numbers"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (of_nan, "gives logits that are not numbers"),
        (one_class_too_many, "gives outputs of shape [1, 4] in the place of [1, 3]"),
        (lambda run: raises, "RuntimeError: no such operator"),
    ],
    ids=["nan", "shape", "raises"],
)
def test_a_variant_with_wrong_outputs_is_a_failed_record(
    tiny: TinyModel,
    engines: dict[Variant, Path],
    tmp_path: Path,
    spoil: Any,
    change: Any,
    reason: str,
) -> None:
    spoil(engines[QUICK], change)
    paths = (engines[QUICK], engines[BASELINE])
    found = measured(tiny, *paths, tmp_path, QUICK, limits=EARLIER)
    assert (found.status, found.reason, found.transient) == ("failed", reason, False)
    assert found.shapes == []
    assert found.baseline_failed is None
    assert set(found.reference) == {"before", "after"}


def test_a_variant_that_dies_is_tried_again_before_it_has_failed(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path, spoil: Any
) -> None:
    spoil(engines[QUICK], lambda run: dies)
    paths = (engines[QUICK], engines[BASELINE])
    with pytest.raises(TightropeError, match=f"{QUICK}: killed by .*; another attempt follows"):
        measured(tiny, *paths, tmp_path, QUICK, limits=EARLIER)
    assert not (tmp_path / "latency.json").exists()
    found = measured(tiny, *paths, tmp_path, QUICK)
    assert (found.status, found.transient, found.shapes) == ("failed", True, [])
    assert found.reason.startswith("killed by SIGKILL")


def test_an_engine_that_was_not_built_is_a_failed_record_with_its_reason(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path
) -> None:
    lost = not_built(tmp_path, QUICK, "no such operator")
    found = measured(tiny, lost, engines[BASELINE], tmp_path, QUICK)
    assert (found.status, found.reason) == ("failed", "not built: no such operator")
    assert (found.shapes, found.reference) == ([], None)


def test_a_fixed_protocol_reaches_the_record(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path
) -> None:
    plan = {**PLAN, "calls": 30, "warmup_calls": 7}
    paths = (engines[QUICK], engines[BASELINE])
    found = measured(tiny, *paths, tmp_path, QUICK, plan=plan, shapes=SHAPES[:1])
    (shape,) = found.shapes
    assert (shape["stop"], [one["calls"] for one in shape["warmups"]]) == ("calls", [7, 7])
    for name in ("blocks_s", "baseline_blocks_s"):
        assert sum(len(block) for block in shape[name]) == 30


def test_the_caller_keeps_its_processors(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path
) -> None:
    measured(tiny, engines[QUICK], engines[BASELINE], tmp_path, QUICK, shapes=SHAPES[:1])
    assert sorted(os.sched_getaffinity(0)) == PROCESSORS


def test_a_variant_that_is_too_slow_is_a_failed_record_without_half_its_shapes(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path
) -> None:
    plan = {**PLAN, "min_calls": 10**6, "max_seconds": 0.5}
    found = measured(tiny, engines[QUICK], engines[BASELINE], tmp_path, QUICK, plan=plan)
    assert found.status == "failed"
    assert found.reason.startswith("too slow (")
    assert (found.shapes, found.transient) == ([], False)


def test_the_audit_of_another_engine_is_refused(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path
) -> None:
    audit, digest = tmp_path / "audit.json", sha256(engines[QUICK])
    written(audit, {"status": "collapsed", "reason": "one answer", "engine_sha256": digest})
    paths = (engines[QUICK], engines[BASELINE], tmp_path, QUICK)
    assert measured(tiny, *paths, audit=audit).reason == "one answer"
    written(audit, {"status": "ok", "reason": None, "engine_sha256": sha256(audit)})
    with pytest.raises(ArtifactError, match=r"audit\.json: the audit of another engine than"):
        measured(tiny, *paths, audit=audit)


@pytest.mark.parametrize("harmed", [QUICK, BASELINE], ids=str)
def test_a_harmed_engine_is_an_error_and_no_record(
    tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path, harmed: Variant
) -> None:
    paths = dict(engines)
    for file in engines[harmed].parent.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    name = next(file.name for file in tmp_path.glob("model.*"))
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-9])
    paths[harmed] = tmp_path / "engine.json"
    with pytest.raises(ArtifactError, match=f"{name}: "):
        measured(tiny, paths[QUICK], paths[BASELINE], tmp_path, QUICK)
    assert not (tmp_path / "latency.json").exists()


def test_a_measurement_beyond_its_limits_is_tried_again_before_it_has_failed(
    tiny: TinyModel,
    engines: dict[Variant, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(child, "POLL_SECONDS", 0.001)  # a block takes no half second
    paths = (engines[QUICK], engines[BASELINE])
    tight = Limits(memory_bytes=1e6, seconds=60, last_attempt=False)
    with pytest.raises(TightropeError, match="another attempt follows"):
        measured(tiny, *paths, tmp_path, QUICK, limits=tight)
    assert not (tmp_path / "latency.json").exists()
    last = Limits(memory_bytes=1e6, seconds=60)
    found = measured(tiny, *paths, tmp_path, QUICK, limits=last)
    assert (found.status, found.transient, found.shapes) == ("failed", True, [])
