"""An archive whose bytes depend on its files alone."""

import hashlib
import os
import tarfile
from pathlib import Path

import pytest
from tightrope.bundle.write import SUMS, write_archive
from tightrope.errors import ArtifactError


def test_the_same_files_give_the_same_bytes_whatever_their_times_and_order(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(bytes(range(256)) * 100)
    write_archive(tmp_path / "one.tar.gz", "top", {"b/weights": file, "a": b"text"})
    os.utime(file, (1, 1))
    file.chmod(0o600)
    write_archive(tmp_path / "two.tar.gz", "top", {"a": b"text", "b/weights": file})
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()


def test_the_sums_are_of_every_file(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"12345")
    write_archive(tmp_path / "one.tar.gz", "top", {"b/weights": file, "a": b"text"})
    with tarfile.open(tmp_path / "one.tar.gz") as archive:
        assert archive.getnames() == ["top/a", "top/b/weights", f"top/{SUMS}"]
        archive.extractall(tmp_path)
    sums = (tmp_path / "top" / SUMS).read_text()
    digests = {
        name: hashlib.sha256(content) for name, content in (("a", b"text"), ("b/weights", b"12345"))
    }
    assert sums == "".join(f"{one.hexdigest()}  {name}\n" for name, one in digests.items())
    assert (tmp_path / "top/b/weights").read_bytes() == b"12345"


def test_a_missing_file_leaves_no_archive(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="missing: cannot be read"):
        write_archive(tmp_path / "one.tar.gz", "top", {"a": tmp_path / "missing"})
    assert not (tmp_path / "one.tar.gz").exists()
