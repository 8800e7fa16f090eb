import json
import shutil
from pathlib import Path

import pytest
from artifact_files import written
from manifests import ENGINE
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import open_manifest, read_manifest, write_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.errors import ArtifactError


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
