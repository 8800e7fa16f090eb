"""What is loaded from a folder is a copy of the bytes that were verified."""

import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tightrope
from manifests import ENGINE
from tightrope.artifacts.manifest import write_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.artifacts.private_copy import private_copy
from tightrope.errors import ArtifactError, StorageError
from tightrope.jobs.child import Limits, supervised

SCRIPTS = Path(tightrope.__file__).parents[1]
PROGRAM = """
import sys
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.artifacts.private_copy import private_copy

print(private_copy(sys.argv[1], EngineManifest))
"""


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """engine.json of a folder with two files."""
    path = tmp_path / "engine" / "engine.json"
    (path.parent / "deep").mkdir(parents=True)
    (path.parent / "weights.bin").write_bytes(bytes(range(256)) * 10_000)
    (path.parent / "deep" / "graph.xml").write_text("<graph/>")
    write_manifest(path, **ENGINE)
    return path


def copy_of(path: Path) -> Path:
    return private_copy(path, EngineManifest)


def write_in_place(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.write(b"other")


def replace_file(file: Path) -> None:
    file.with_name("other").write_bytes(b"other")
    file.with_name("other").replace(file)


def test_a_copy_holds_what_the_manifest_lists_and_nothing_else(engine: Path) -> None:
    (engine.parent / "unlisted.so").write_bytes(b"code")
    copy = copy_of(engine)
    assert copy.name == engine.name
    found = {file.relative_to(copy.parent) for file in copy.parent.rglob("*") if file.is_file()}
    assert found == {Path(name) for name in ("engine.json", "weights.bin", "deep/graph.xml")}
    for name in found:
        assert (copy.parent / name).read_bytes() == (engine.parent / name).read_bytes()


def test_only_this_user_can_open_it(engine: Path) -> None:
    assert stat.S_IMODE(copy_of(engine).parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("change", [write_in_place, replace_file, Path.unlink])
def test_what_happens_to_a_file_afterwards_does_not_reach_the_copy(
    engine: Path, change: Callable[[Path], None]
) -> None:
    weights = engine.parent / "weights.bin"
    content, copy = weights.read_bytes(), copy_of(engine)
    change(weights)
    assert (copy.parent / "weights.bin").read_bytes() == content
    assert copy_of(engine) == copy


def test_another_manifest_in_its_place_is_another_copy(engine: Path) -> None:
    copy = copy_of(engine)
    (engine.parent / "weights.bin").write_bytes(b"rebuilt")
    write_manifest(engine, **ENGINE)
    assert (copy_of(engine).parent / "weights.bin").read_bytes() == b"rebuilt"
    assert copy_of(engine) != copy


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (Path.unlink, "weights.bin: missing, .*engine.json lists it"),
        (lambda file: file.write_bytes(b"short"), "weights.bin: 5 bytes, .*engine.json says"),
        (write_in_place, "weights.bin: its content is not the one in .*engine.json"),
        (lambda file: (file.unlink(), os.mkfifo(file)), "weights.bin: missing"),
    ],
)
def test_a_harmed_file_is_named_and_leaves_no_copy(
    engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm, words: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    harm(engine.parent / "weights.bin")
    with pytest.raises(ArtifactError, match=f"{words}.*; delete .*engine.json and run again"):
        copy_of(engine)
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize("name", ["../outside", "deep/../../outside", "/outside", ""])
def test_a_name_outside_the_folder_is_refused(engine: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").write_bytes(b"")
    document = json.loads(engine.read_text())
    document["files"] = {name: {"sha256": "0" * 64, "size_bytes": 0}}
    engine.write_text(json.dumps(document))
    with pytest.raises(ArtifactError, match=r"engine.json: lists '.*', which is not in its folder"):
        copy_of(engine)


def test_a_full_temporary_folder_is_an_error_with_its_remedy(engine: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, hard))
    try:
        with pytest.raises(StorageError, match=r"weights\.bin: an engine cannot be .* set TMPDIR"):
            copy_of(engine)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_child_shares_the_copy_of_its_parent(engine: Path) -> None:
    copy = copy_of(engine)
    assert supervised(copy_of, engine, limits=Limits(memory_bytes=8e9, seconds=60)) == copy
    assert copy.is_file()


def test_it_ends_with_its_process(engine: Path) -> None:
    words = [sys.executable, "-c", PROGRAM, str(engine)]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    copy = Path(done.stdout.strip())
    assert copy.name == "engine.json"
    assert not copy.parent.exists()
