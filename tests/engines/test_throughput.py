"""Throughput of real tiny engines: several instances at a time, and failures."""

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from artifact_files import written
from tightrope.artifacts.files import read_json
from tightrope.engines.load import load_engine
from tightrope.errors import TightropeError
from tightrope.measure.run import TimingSettings
from tightrope.measure.throughput import BLOCKS, measure_throughput
from tightrope.records.throughput import ThroughputRecord, call_seconds, samples_per_second
from tightrope.variants import Variant
from tiny_images import SIDE
from tiny_model import (
    EXECUTION,
    LIMITS,
    LONGEST,
    TinyModel,
    artifacts_of,
    build_variant,
    name_variant,
)

Build = Callable[[Variant], Path]
PLAN = {
    "batches": [1, 4],
    "sequence": 16,
    "instances": [1, 2],
    "threads": "auto",
    "p99_ms": None,
    "seconds": 0.2,
    "max_seconds": 60,
}
CORES = len(os.sched_getaffinity(0))
two_cores = pytest.mark.skipif(CORES < 2, reason="needs two processors")


def measure(tiny: TinyModel, engine: Path, target: Path, **changes: Any) -> ThroughputRecord:
    settings = TimingSettings(
        max_sequence=LONGEST,
        plan={**PLAN, **changes},
        quiet_seconds=0.0,
        terminal=sys.__stderr__,
        execution=replace(EXECUTION, threads=2, limits=LIMITS),
    )
    names = {"model": "tiny", "variant": "cpu-onnxruntime-fp32"}
    measure_throughput(artifacts_of(tiny, engine), target, settings, **names)
    return ThroughputRecord.read(target)


@pytest.fixture(scope="module")
def engine(built: Build) -> Path:
    return built(name_variant("onnxruntime", "fp32"))


def spoil(monkeypatch: pytest.MonkeyPatch, harm: Callable[[Any], Any], threads: int) -> None:
    """Let instances with so many threads do something else with their outputs."""

    def load(path: Path, **settings: Any) -> tuple[Any, dict[str, float]]:
        run, seconds = load_engine(path, **settings)
        spoilt = settings["threads"] == threads
        return (lambda inputs: harm(run(inputs))) if spoilt else run, seconds

    monkeypatch.setattr("tightrope.measure.timed_engine.load_engine", load)


@two_cores
def test_two_instances_with_a_thread_each_stand_beside_one_with_two(
    tiny: TinyModel, engine: Path, tmp_path: Path
) -> None:
    record = measure(tiny, engine, tmp_path / "v.throughput.json")
    assert (record.status, record.reason, record.sequence, record.cores) == ("ok", None, 16, 2)
    assert [(p["instances"], p["threads"], p["batch"]) for p in record.points] == [
        *[(1, 2, 1), (1, 2, 4)],
        *[(2, 1, 1), (2, 1, 4)],
    ]
    for point in record.points:
        assert point["reason"] is None and not point["skipped"]
        assert len(point["blocks_s"]) == len(point["waited_s"]) == point["instances"]
        assert all(len(blocks) == BLOCKS for blocks in point["blocks_s"])
        # a closed loop: the calls of an instance follow one another within the window
        for blocks in point["blocks_s"]:
            calls = [call for block in blocks for call in block]
            assert sum(calls) <= point["seconds"]
        calls = call_seconds(point)
        assert len(calls) == sum(len(b) for blocks in point["blocks_s"] for b in blocks)
        assert samples_per_second(point).value > 0
        assert point["peak_rss_bytes"] > 0
    assert record.spent_s > 0


def test_what_max_seconds_leaves_out_says_so(tiny: TinyModel, engine: Path, tmp_path: Path) -> None:
    record = measure(tiny, engine, tmp_path / "v.throughput.json", max_seconds=0.01)
    first, *others = record.points
    assert first["reason"] is None
    assert {point["reason"] for point in others} == {"max_seconds = 0.01 were over"}
    assert all(point["skipped"] for point in others)


def test_larger_batches_than_the_bound_allows_are_not_measured(
    tiny: TinyModel, engine: Path, tmp_path: Path
) -> None:
    record = measure(tiny, engine, tmp_path / "v.throughput.json", p99_ms=1e-6, instances=[1])
    # the first too, where another program disturbed it, decides nothing
    assert record.points[0]["reason"] is None
    if record.points[0]["foreign_cores"] <= 0.1:
        assert "at batch 1 already, over the bound" in record.points[1]["reason"]


def test_an_engine_that_dies_is_a_failed_record(
    tiny: TinyModel, engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, lambda _: os.kill(os.getpid(), signal.SIGKILL), threads=2)
    record = measure(tiny, engine, tmp_path / "v.throughput.json", instances=[1])
    assert record.status == "failed" and record.transient
    assert "killed by SIGKILL" in record.reason
    assert [point["skipped"] for point in record.points] == [False, False]


@two_cores
def test_instances_that_fail_leave_the_other_points(
    tiny: TinyModel, engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, lambda logits: logits * float("nan"), threads=1)
    record = measure(tiny, engine, tmp_path / "v.throughput.json")
    assert (record.status, record.reason) == ("ok", None)
    reasons = [point["reason"] for point in record.points]
    assert reasons == [None, None, *["gives logits that are not numbers"] * 2]


def test_an_engine_that_was_not_built_is_a_failed_record(
    tiny: TinyModel, built: Build, tmp_path: Path
) -> None:
    folder = built(name_variant("onnxruntime", "fp32"))
    manifest = read_json(folder)
    broken = tmp_path / "engine.json"
    written(broken, {**manifest, "status": "failed", "reason": "no kernel", "files": {}})
    record = measure(tiny, broken, tmp_path / "v.throughput.json")
    assert (record.status, record.points) == ("failed", [])
    assert record.reason == "not built: no kernel"


def test_more_tokens_than_the_model_takes_name_their_key(
    tiny: TinyModel, engine: Path, tmp_path: Path
) -> None:
    with pytest.raises(TightropeError, match=r"throughput\.sequence"):
        measure(tiny, engine, tmp_path / "v.throughput.json", sequence=100_000)


def test_images_have_the_size_of_their_model(tiny_images: TinyModel, tmp_path: Path) -> None:
    engine = build_variant(
        tiny_images, name_variant("onnxruntime", "fp32"), tmp_path / "engine" / "engine.json"
    )
    target = tmp_path / "v.throughput.json"
    record = measure(tiny_images, engine, target, instances=[1], batches=[2])
    assert (record.status, record.reason, record.sequence) == ("ok", None, None)
    assert (record.height, record.width) == (SIDE, SIDE)
    assert len(call_seconds(record.points[0])) > 0
