import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from artifact_files import without_digests, written
from manifests import ENGINE
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import (
    Artifacts,
    checkpoint_of,
    identity,
    open_manifest,
    read_manifest,
    require_engine_of,
    write_manifest,
)
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.errors import ArtifactError
from tightrope.int8.calibrate import calibrate
from tightrope.measure.run import facts_of_run
from tightrope.onnx.file import load_onnx, require_onnx_of
from tightrope.variants import Variant
from tiny_model import EXECUTION, LONGEST, SAMPLES, TinyModel, name_variant

QUICK = name_variant("onnxruntime", "fp32")
ELSEWHERE = "not made from .*checkpoint.json, maybe another model's; delete it and what it was"


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """The manifest of a folder with two files."""
    path = tmp_path / "engine.json"
    (tmp_path / "deep").mkdir()
    (tmp_path / "weights.bin").write_bytes(b"0123456789")
    (tmp_path / "deep" / "graph.xml").write_text("<graph/>")
    write_manifest(path, **ENGINE)
    return path


def test_it_lists_every_file_beside_it_with_the_same_bytes_in_any_folder(manifest, tmp_path):
    manifest.with_name(".weights.bin.123.part").write_bytes(b"0")  # half written
    write_manifest(manifest, **ENGINE, compile_s=2.5)
    document = read_manifest(manifest, EngineManifest)
    weights = manifest.with_name("weights.bin")
    assert (document["variant"], document["compile_s"]) == ("cpu-pytorch-fp32", 2.5)
    assert set(document["files"]) == {"weights.bin", "deep/graph.xml"}
    assert document["files"]["weights.bin"] == {"sha256": sha256(weights), "size_bytes": 10}
    shutil.copytree(manifest.parent, tmp_path / "other")
    again = tmp_path / "other" / "engine.json"
    write_manifest(again, compile_s=2.5, **dict(reversed(ENGINE.items())))
    assert again.read_bytes() == manifest.read_bytes()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, r"weights\.bin: missing, .*engine\.json lists it"),
        (b"012345", r"weights\.bin: 6 bytes, .*engine\.json says 10"),
        (b"0123456780", r"weights\.bin: its content is not the one in"),
    ],
)
def test_a_file_that_is_missing_or_changed_is_named(manifest, content, words) -> None:
    file = manifest.with_name("weights.bin")
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(ArtifactError, match=words):
        read_manifest(manifest, EngineManifest)
    open_manifest(manifest, EngineManifest)  # which looks at no file


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": "fine"}, r"Invalid enum value 'fine' - at `\$\.status`"),
        ({"build_s": "1"}, r"Expected `float`, got `str` - at `\$\.build_s`"),
        ({"files": []}, r"Expected `object`, got `array` - at `\$\.files`"),
    ],
)
def test_a_field_of_another_type_another_kind_and_a_cut_are_named(manifest, changes, words) -> None:
    with pytest.raises(ArtifactError, match=r"missing required field `task`"):
        read_manifest(manifest, CheckpointManifest)
    written(manifest, {**json.loads(manifest.read_text()), **changes})
    for read in (read_manifest, open_manifest):
        with pytest.raises(ArtifactError, match=rf"engine\.json: {words}"):
            read(manifest, EngineManifest)
    manifest.write_text(manifest.read_text()[:-20])
    with pytest.raises(ArtifactError, match=r"engine\.json: its content is not what"):
        read_manifest(manifest, EngineManifest)


@pytest.fixture
def other(tiny: TinyModel, tmp_path: Path) -> Path:
    """The manifest of another model's checkpoint: one setting differs."""
    folder = tmp_path / "other" / "checkpoint"
    shutil.copytree(tiny.checkpoint.parent, folder)
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "hidden_act": "relu"}))
    return with_fields(folder / "checkpoint.json", model="other")


def with_fields(manifest: Path, **fields: Any) -> Path:
    """Write a manifest anew, of the files that are there now."""
    document = json.loads(manifest.read_text())
    write_manifest(manifest, **{**without_digests(document), **fields})
    return manifest


def of(checkpoint: Path) -> str:
    return identity(open_manifest(checkpoint, CheckpointManifest))


def test_a_checkpoint_is_the_same_in_any_folder_and_onnx_files_name_it(tiny, tmp_path, other):
    shutil.copytree(tiny.checkpoint.parent, tmp_path / "copy")
    assert of(with_fields(tmp_path / "copy/checkpoint.json", model="copy")) == of(tiny.checkpoint)
    assert of(other) != of(tiny.checkpoint)
    for path in (tiny.onnx, tiny.simplified, tiny.u8s8, tiny.s8s8, tiny.e4m3):
        assert checkpoint_of(load_onnx(path)) == of(tiny.checkpoint)


def test_what_was_made_of_or_for_another_model_or_variant_is_not_measured(tiny, built, other):
    engine = built(QUICK)
    assert open_manifest(engine, EngineManifest)["checkpoint"] == of(tiny.checkpoint)

    def facts(checkpoint: Path, model: str, variant: Variant = QUICK) -> dict[str, Any]:
        artifacts = Artifacts(model, str(variant), engine, checkpoint, checkpoint)
        return facts_of_run(artifacts, EXECUTION)

    assert facts(tiny.checkpoint, "any")["model"] == "any"
    with pytest.raises(ArtifactError, match=f"engine.json: {ELSEWHERE}"):
        facts(other, "other")
    with pytest.raises(ArtifactError, match=r"checkpoint.json: .* of model other, not of tiny"):
        facts(other, "tiny")
    with pytest.raises(ArtifactError, match="the engine of cpu-onnxruntime-fp32, not of cpu-tvm"):
        facts(tiny.checkpoint, "tiny", name_variant("tvm", "fp32"))


def test_what_is_of_another_or_an_unknown_checkpoint_is_refused(tiny, built, other, tmp_path):
    document, engine = json.loads(built(QUICK).read_text()), tmp_path / "engine.json"
    written(engine, {**document, "checkpoint": None})
    with pytest.raises(ArtifactError, match=ELSEWHERE):
        require_engine_of(engine, tiny.checkpoint, str(QUICK))
    failed = {"status": "failed", "reason": "no such operator", "checkpoint": None}
    written(engine, document | failed)
    require_engine_of(engine, other, str(QUICK))
    del document["checkpoint"]
    written(engine, document)
    with pytest.raises(ArtifactError, match=r"missing required field `checkpoint`.*: delete it"):
        require_engine_of(engine, tiny.checkpoint, str(QUICK))
    # an ONNX file of another model is neither calibrated nor taken
    with pytest.raises(ArtifactError, match=f"model.simplified.onnx: {ELSEWHERE}"):
        require_onnx_of(tiny.simplified, other)
    settings: dict[str, Any] = {"percentile": None, "threads": 1, "libraries": {}}
    paths = (tiny.simplified, tiny.split("calibration"), other, tmp_path / "cache.json")
    with pytest.raises(ArtifactError, match=f"model.simplified.onnx: {ELSEWHERE}"):
        calibrate(*paths, method="nncf", samples=SAMPLES, max_sequence=LONGEST, **settings)
    assert not (tmp_path / "cache.json").exists()
