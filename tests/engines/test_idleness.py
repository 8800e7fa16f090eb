"""First calls after a pause of a real tiny engine: what fails is recorded."""

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
from tightrope.measure.idleness import measure_idleness
from tightrope.measure.run import TimingSettings
from tightrope.records.idleness import IdlenessRecord
from tightrope.variants import Variant
from tiny_model import EXECUTION, LIMITS, LONGEST, TinyModel, artifacts_of, name_variant

Build = Callable[[Variant], Path]
VARIANT = "cpu-onnxruntime-fp32"
NAMES = {"model": "tiny", "variant": VARIANT}


def settings(**plan: Any) -> TimingSettings:
    return TimingSettings(
        shapes=[{"batch": 1, "sequence": 16}],
        plan=plan,
        quiet_seconds=0.0,
        max_sequence=LONGEST,
        terminal=sys.__stderr__,
        execution=replace(EXECUTION, limits=LIMITS),
    )


def idleness(tiny: TinyModel, engine: Path, target: Path) -> IdlenessRecord:
    plan = {"pauses": [0.01], "max_seconds": 60}
    measure_idleness(artifacts_of(tiny, engine), target, settings(**plan), **NAMES)
    return IdlenessRecord.read(target)


@pytest.fixture(scope="module")
def engine(built: Build) -> Path:
    return built(name_variant("onnxruntime", "fp32"))


@pytest.fixture
def unbuilt(engine: Path, tmp_path: Path) -> Path:
    """The manifest of an engine that could not be built."""
    path = tmp_path / "engines" / VARIANT / "engine.json"
    path.parent.mkdir(parents=True)
    written(path, {**read_json(engine), "status": "failed", "reason": "no kernel", "files": {}})
    return path


def dies(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Let engines kill their process when they are called."""

    def load(path: Path, **changes: Any) -> tuple[Any, dict[str, float]]:
        _, seconds = load_engine(path, **changes)
        return lambda _: os.kill(os.getpid(), signal.SIGKILL), seconds

    monkeypatch.setattr(f"{module}.load_engine", load)


def test_calls_after_pauses_are_recorded_raw(tiny: TinyModel, engine: Path, tmp_path: Path) -> None:
    record = idleness(tiny, engine, tmp_path / "v.idleness.json")
    assert (record.status, record.reason, len(record.calls)) == ("ok", None, 30)
    assert record.warmup["calls"] > 0
    assert all(call["paused_s"] >= 0.01 for call in record.calls)


def test_an_engine_that_was_not_built_has_none(
    tiny: TinyModel, unbuilt: Path, tmp_path: Path
) -> None:
    record = idleness(tiny, unbuilt, tmp_path / "v.idleness.json")
    assert (record.status, record.reason) == ("failed", "not built: no kernel")


def test_an_engine_that_dies_after_a_pause_is_a_failed_record(
    tiny: TinyModel, engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies(monkeypatch, "tightrope.measure.timed_engine")
    record = idleness(tiny, engine, tmp_path / "v.idleness.json")
    assert (record.status, record.calls) == ("failed", [])
    assert "killed by SIGKILL" in record.reason
