import math
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from mounts import mounted
from tightrope.artifacts.files import read_json, sha256, write_bytes, write_json
from tightrope.errors import ArtifactError, StorageError


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    with mounted(tmp_path / "tiny", "-o", "size=64k"):
        yield tmp_path / "tiny"


def test_a_reader_sees_the_old_file_or_the_new_one_whole(tmp_path: Path) -> None:
    target, size, ended = tmp_path / "file", 2_000_000, threading.Event()
    write_bytes(target, b"0" * size)

    def write() -> None:
        for number in range(40):
            write_bytes(target, str(number % 10).encode() * size)
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not ended.is_set():
        content = target.read_bytes()
        assert content == content[:1] * size
        seen.add(content[:1])
    writer.join()
    assert len(seen) > 1
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_and_a_read_only_one_are_errors_with_the_path_and_the_old_file_stays(tiny_disk):
    target = tiny_disk / "folder" / "file"
    write_bytes(target, b"old")
    with pytest.raises(StorageError, match=r"file.*: cannot be written \(No space left on device"):
        write_bytes(target, b"x" * 200_000)
    assert target.read_bytes() == b"old"
    assert [file.name for file in target.parent.iterdir()] == ["file"]
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    with pytest.raises(StorageError, match=r"tiny.*cannot be written \(Read-only file system"):
        write_bytes(tiny_disk / "other" / "file", b"x")


def test_json_is_sorted_with_every_float_as_it_was_and_a_missing_file_named(tmp_path: Path) -> None:
    numbers = [0.1 + 0.2, 1e-300, 5e-324, 1.7976931348623157e308, -0.0]
    document = {"b": [1, 2.5, None, True], "a": {"ü": "\N{MINUS SIGN}"}, "c": numbers}
    write_json(tmp_path / "a.json", document)
    write_json(tmp_path / "b.json", dict(reversed(document.items())))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    found = read_json(tmp_path / "a.json")
    assert found == document
    assert [one.hex() for one in found["c"]] == [one.hex() for one in numbers]
    for number in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write_json(tmp_path / "c.json", {"deep": [{"latency_s": number}]})
    assert not (tmp_path / "c.json").exists()
    # the test vector of FIPS 180
    (tmp_path / "file").write_bytes(b"abc")
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256(tmp_path / "file") == digest
    for read in (read_json, sha256):
        with pytest.raises(ArtifactError, match=r"d\.json: cannot be read \(No such file"):
            read(tmp_path / "d.json")
