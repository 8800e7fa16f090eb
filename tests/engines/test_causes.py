"""A real tiny engine beside the same one without a cause of its time."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

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
Verify = Callable[..., CausesRecord]


@pytest.fixture(scope="module")
def folder(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's folder with an engine that pads sixteen tokens to sixty-four, and its profile."""
    made = tmp_path_factory.mktemp("causes")
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


@pytest.fixture
def verify(tiny: TinyModel, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Verify:
    # so that no core is idle, on any machine
    monkeypatch.setattr("tightrope.measure.causes.physical_cores", lambda: 1)

    def verified(profile: Path) -> CausesRecord:
        target = profile.with_name("causes.json")
        settings = timing_settings()
        engine = folder / "engines" / VARIANT / "engine.json"
        sources = {"source": str(tiny.simplified)}
        verify_causes(artifacts_of(tiny, engine), sources, profile, target, settings, **NAMES)
        return CausesRecord.read(target)

    return verified


def test_padding_is_removed_by_an_exact_bucket_and_both_are_timed(folder, verify) -> None:
    record = verify(folder / "profile.json")
    assert (record.status, record.reason) == ("ok", None)
    (cause,) = record.causes
    assert (cause.batch, cause.sequence) == (1, 16)
    assert cause.cause == "75 % of the request is padding"
    assert cause.reason is None
    assert 0 < cause.low < cause.high
    assert all(len(one.blocks_s) == 2 and all(one.blocks_s) for one in cause.rounds)
    own, exact = (min(min(one.blocks_s[which]) for one in cause.rounds) for which in (0, 1))
    assert exact < own
    assert not list((folder / "work").iterdir())


def test_what_cannot_be_built_or_was_not_profiled_leaves_the_reason(folder, tmp_path, verify):
    profile, planted = tmp_path / "profile.json", read_json(folder / "profile.json")
    record = verify(written(profile, {**planted, "unprofiled": "no profiler"}))
    assert (record.status, record.reason, record.causes) == ("failed", "no profiler", [])
    planted["shapes"][0]["batch"] = -5
    record = verify(written(profile, planted))
    (cause,) = record.causes
    assert (record.status, cause.rounds) == ("ok", [])
    assert cause.reason.startswith("not built: ")
