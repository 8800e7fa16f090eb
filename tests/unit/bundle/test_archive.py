"""An archive whose bytes depend on its files alone."""

import hashlib
import os
import tarfile
from pathlib import Path

import pytest
from tightrope.bundle.write import SUMS, write_archive
from tightrope.errors import ArtifactError


def test_sums_are_of_every_file_and_bytes_those_whatever_times_and_order(tmp_path: Path) -> None:
    file, one, two = (tmp_path / name for name in ("weights", "one.tar.gz", "two.tar.gz"))
    file.write_bytes(b"12345")
    write_archive(one, "top", {"b/weights": file, "a": b"text"})
    os.utime(file, (1, 1))
    file.chmod(0o600)
    write_archive(two, "top", {"a": b"text", "b/weights": file})
    assert one.read_bytes() == two.read_bytes()
    assert one.read_bytes()[4:8] == bytes(4), "it says no time of its own"
    with tarfile.open(one) as archive:
        assert archive.getnames() == ["top/a", "top/b/weights", f"top/{SUMS}"]
        archive.extractall(tmp_path)
    contents = {"a": b"text", "b/weights": b"12345"}
    sums = [f"{hashlib.sha256(own).hexdigest()}  {name}\n" for name, own in contents.items()]
    assert (tmp_path / "top" / SUMS).read_text() == "".join(sums)
    assert (tmp_path / "top/b/weights").read_bytes() == b"12345"
    # a missing file leaves no archive
    with pytest.raises(ArtifactError, match="missing: cannot be read"):
        write_archive(tmp_path / "none.tar.gz", "top", {"a": tmp_path / "missing"})
    assert not (tmp_path / "none.tar.gz").exists()
