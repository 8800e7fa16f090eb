"""Causes that cannot be removed; one that is: tests/workflow/test_whole_run.py."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from artifact_files import written
from msgspec import to_builtins
from short_timing import timing_settings
from tightrope.artifacts.descent import identity
from tightrope.artifacts.files import read_json
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.jobs.child import supervised
from tightrope.measure.causes import verify_causes
from tightrope.measure.peaks import peaks_of
from tightrope.measure.profile import measure_profile
from tightrope.records.profile import CausesRecord
from tiny_model import (
    EXECUTION,
    LIMITS,
    LONGEST,
    OPTIONS,
    TinyModel,
    artifacts_of,
    build_variant,
    name_variant,
)

VARIANT = "cpu-openvino-fp32"
NAMES = {"model": "tiny", "variant": VARIANT}
SHAPES = [{"batch": 1, "sequence": 16}, {"batch": 1, "sequence": 64}]
BUCKETS = {"batch": [1], "sequence": [64]}


@pytest.fixture
def folder(tiny: TinyModel, tmp_path: Path) -> Path:
    """A model's folder with an engine that pads sixteen tokens to sixty-four, and its profile."""
    made = tmp_path / "causes"
    engine = made / "engines" / VARIANT / "engine.json"
    options = {**OPTIONS["openvino"], "buckets": BUCKETS}
    build_variant(tiny, name_variant("openvino", "fp32"), engine, options=options)
    peaks = supervised(partial(peaks_of, "cpu", 1), limits=LIMITS)
    # so that bf16 is no cause, on any machine
    peaks.operations_per_s.pop("bf16", None)
    written(made / "peaks.json", {"peaks": to_builtins(peaks)})
    requests = [{**shape, "finish_s": 0.0} for shape in SHAPES]
    checkpoint = identity(open_manifest(tiny.checkpoint, CheckpointManifest))
    written(made / "requests.json", {"checkpoint": checkpoint, "requests": requests})
    measure_profile(
        artifacts_of(tiny, engine),
        *(made / f"{name}.json" for name in ("requests", "peaks", "profile")),
        max_sequence=LONGEST,
        execution=EXECUTION,
        **NAMES,
    )
    return made


def test_what_cannot_be_built_or_was_not_profiled_leaves_the_reason(tiny, folder, monkeypatch):
    # so that no core is idle, on any machine
    monkeypatch.setattr("tightrope.measure.causes.physical_cores", lambda: 1)
    profile, target = folder / "profile.json", folder / "causes.json"
    artifacts = artifacts_of(tiny, folder / "engines" / VARIANT / "engine.json")
    sources, planted = {"source": str(tiny.simplified)}, read_json(profile)

    def verified(**changes: Any) -> CausesRecord:
        written(profile, {**planted, **changes})
        verify_causes(artifacts, sources, profile, target, timing_settings(), **NAMES)
        return CausesRecord.read(target)

    record = verified(unprofiled="no profiler")
    assert (record.status, record.reason, record.causes) == ("failed", "no profiler", [])
    planted["shapes"][0]["batch"] = -5
    record = verified()
    (cause,) = record.causes
    assert (record.status, cause.rounds) == ("ok", [])
    assert cause.reason.startswith("not built: ")
