"""Real engines of the tiny model, measured in processes of their own."""

import io
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import numpy as np
import pytest
from artifact_files import written
from busy import PROCESSORS, busy_child
from latency_records import PLAN as SHORT_PLAN
from manifests import ENGINE
from played_engines import dies
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import write_manifest
from tightrope.engines.load import load_engine
from tightrope.errors import ArtifactError, TightropeError
from tightrope.jobs.child import Limits, supervised
from tightrope.machine.cores import pinned_processors
from tightrope.measure import timed_engine
from tightrope.measure.latency import ROUNDS, measure_latency, reference_workload, timed_rounds
from tightrope.measure.run import TimingSettings
from tightrope.records.latency import LatencyRecord
from tightrope.variants import Variant
from tiny_model import LONGEST, TinyModel, artifacts_of, executed_with, name_variant

PLAN = {**SHORT_PLAN, "loads": 2, "min_calls": 8, "warmup_seconds": 1.0}
SHAPES = [{"batch": 1, "sequence": 16}, {"batch": 4, "sequence": LONGEST}]
BASELINE, QUICK = name_variant("onnxruntime", "int8"), name_variant("onnxruntime", "fp32")
LAST = Limits(memory_bytes=8e9, seconds=120)
EARLIER = replace(LAST, last_attempt=False)
Run = Callable[[Any], Any]
Measure = Callable[..., LatencyRecord]


@pytest.fixture(scope="module")
def engines(built: Callable[[Variant], Path]) -> dict[Variant, Path]:
    return {variant: built(variant) for variant in (BASELINE, QUICK)}


@pytest.fixture
def measured(tiny: TinyModel, engines: dict[Variant, Path], tmp_path: Path) -> Measure:
    """Measure a variant, by default at one shape with one load, beside its baseline."""

    def measured(engine=engines[QUICK], baseline=engines[BASELINE], **options) -> LatencyRecord:
        judged = options.pop("judged", None)
        facts = {"shapes": SHAPES[:1], "plan": {**PLAN, "loads": 1, **options.pop("plan", {})}}
        facts |= {"quiet_seconds": 0.0, "max_sequence": LONGEST, "terminal": io.StringIO()}
        facts |= {"libraries": {"onnxruntime": "1"}, **options}
        settings = TimingSettings(execution=executed_with(facts), **facts)
        artifacts, target = artifacts_of(tiny, engine, "timing"), tmp_path / "latency.json"
        measure_latency(artifacts, baseline, target, settings, judged=judged)
        return LatencyRecord.read(target)

    return measured


def alone(record: LatencyRecord) -> bool:
    return record.baseline is None and all(
        shape.baseline_blocks_s is None and shape.blocks_s for shape in record.shapes
    )


def not_built(folder: Path, variant: Variant) -> Path:
    failed = {"status": "failed", "reason": "no such operator", "variant": str(variant)}
    write_manifest(folder / "lost.json", **{**ENGINE, **failed})
    return folder / "lost.json"


def of_nan(run: Run) -> Run:
    return lambda inputs: np.full_like(run(inputs), np.nan)


def dies_at_the_second_shape(run: Run) -> Run:
    return lambda inputs: run(inputs) if len(inputs["input_ids"]) == 1 else dies()


@pytest.fixture
def spoil(monkeypatch, engines) -> Callable[[Variant, Callable[[Run], Run]], None]:
    """Has that engine, and no other, loaded with its `run` replaced."""

    def spoil(variant: Variant, change: Callable[[Run], Run]) -> None:
        def load(one: Path, **options: Any) -> tuple[Run, dict[str, float]]:
            run, seconds = load_engine(one, **options)
            return change(run) if one == engines[variant] else run, seconds

        monkeypatch.setattr(timed_engine, "load_engine", load)

    return spoil


def test_a_record_holds_all_samples_of_all_shapes(measured, engines, spoil, tmp_path) -> None:
    def noted(run: Run) -> Run:
        def call(inputs: Any) -> Any:
            with (tmp_path / "calls").open("a") as file:
                file.write(json.dumps(inputs["input_ids"].shape) + "\n")
            return run(inputs)

        return call

    spoil(QUICK, noted)
    record = measured(shapes=SHAPES, plan={"loads": 2})
    assert (record.status, record.reason, record.transient) == ("ok", None, None)
    assert (record.plan, record.threads) == (PLAN, 1)
    assert record.processors == pinned_processors(1)
    assert (record.baseline, record.baseline_failed) == (str(BASELINE), None)
    assert record.engine_sha256 == sha256(engines[QUICK])
    assert min(record.import_s, record.load_s) > 0
    assert 30e6 < record.peak_rss_bytes < 4e9
    assert record.first_call_s == record.shapes[0].first_call_s > 0
    assert [shape.sizes for shape in record.shapes] == SHAPES
    seen = set((tmp_path / "calls").read_text().splitlines())
    assert seen == {json.dumps(list(shape.values())) for shape in SHAPES}
    for shape in record.shapes:
        for blocks in (shape.blocks_s, shape.baseline_blocks_s):
            samples = [sample for block in blocks for sample in block]
            assert len(blocks) >= PLAN["pairs"]
            assert len(samples) >= PLAN["min_calls"] and min(samples) > 0
        assert max(pair.window for pair in shape.pairs) < len(shape.foreign_cores)
    for workload in (record.reference.before, record.reference.after):
        assert len(workload.rounds_s) == ROUNDS
    assert sorted(os.sched_getaffinity(0)) == PROCESSORS


def test_a_record_says_what_other_load_cost_and_who_was_the_loudest(measured: Measure) -> None:
    terminal = io.StringIO()
    with busy_child(pinned_processors(1)[0]):
        found = measured(quiet_seconds=0.7, terminal=terminal)
    assert (found.status, found.lost_s >= 0.7, bool(found.busiest)) == ("ok", True, True)
    assert terminal.getvalue().startswith("waiting for a quiet machine: ")


def test_without_a_baseline_it_is_measured_alone(measured, engines, tmp_path, spoil) -> None:
    found = measured(engines[BASELINE])
    assert (found.status, found.baseline_failed) == ("ok", None)
    assert alone(found)
    found = measured(baseline=not_built(tmp_path, BASELINE))
    assert (found.status, found.baseline_failed) == ("ok", "not built: no such operator")
    assert alone(found)
    # where it fails
    killed = "baseline killed by SIGKILL (out of memory, or from outside)"
    for change, limits, reason in (
        (of_nan, EARLIER, "baseline gives logits that are not numbers"),
        (dies_at_the_second_shape, LAST, killed),
    ):
        spoil(BASELINE, change)
        found = measured(shapes=SHAPES, limits=limits)
        assert (found.status, found.reason, found.transient) == ("ok", None, None)
        assert found.baseline_failed == reason
        assert len(found.shapes) == len(SHAPES)
        assert alone(found)


def test_one_that_dies_is_tried_again_first(measured: Measure, tmp_path: Path, spoil: Any) -> None:
    for variant, words in ((BASELINE, "baseline killed by"), (QUICK, f"{QUICK}: killed by")):
        spoil(variant, lambda run: lambda _: dies())
        with pytest.raises(TightropeError, match=f"{words} .*; another attempt follows"):
            measured(limits=EARLIER)
        assert not (tmp_path / "latency.json").exists()
    found = measured()
    assert (found.status, found.transient, found.shapes) == ("failed", True, [])
    assert found.reason.startswith("killed by SIGKILL")


def test_one_that_was_not_built_or_has_collapsed_is_not_timed(measured, engines, tmp_path):
    found = measured(not_built(tmp_path, QUICK))
    assert (found.status, found.reason) == ("failed", "not built: no such operator")
    assert (found.shapes, found.reference) == ([], None)
    judged = tmp_path / "accuracy.json"
    known = {"engine_sha256": sha256(engines[QUICK]), "reason": None, "transient": None}
    known |= {"status": "ok", "collapsed": {"reason": "one answer", "tensors": []}}
    written(judged, known)
    assert measured(judged=judged).reason == "one answer"
    killed = {"status": "failed", "reason": "killed", "transient": True, "collapsed": None}
    written(judged, known | killed)
    found = measured(judged=judged)
    assert (found.reason, found.transient) == ("killed", True), "both are measured again"
    written(judged, {**known, "engine_sha256": "0" * 64})
    with pytest.raises(ArtifactError, match=r"accuracy\.json: measured with another engine than"):
        measured(judged=judged)


def cpu_seconds(processors: list[int]) -> float:
    """Of the reference workload on these processors."""
    before = getrusage(RUSAGE_CHILDREN)
    assert len(reference_workload(processors).frequency_khz) == len(processors)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def pinned(processors: list[int]) -> set[int]:
    """In a child: where its threads run."""
    timed_rounds(processors)
    return os.sched_getaffinity(0)


@pytest.mark.skipif(len(PROCESSORS) < 2, reason="needs two processors")
def test_each_of_the_processors_does_the_whole_reference_workload() -> None:
    assert supervised(pinned, PROCESSORS[-1:], limits=LAST) == {PROCESSORS[-1]}
    assert cpu_seconds(PROCESSORS[-2:]) > 1.5 * cpu_seconds(PROCESSORS[-1:])
