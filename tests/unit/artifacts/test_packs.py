"""What is refused when a pack is unpacked; packs that go to nodes: workflow/test_stored.py."""

import io
import tarfile
from pathlib import Path

import pytest
from tightrope.artifacts.manifest import write_manifest
from tightrope.artifacts.packs import unpack, write_pack
from tightrope.errors import ArtifactError


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    """A member of a tar file."""
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


def write_tar(path: Path, *members: tarfile.TarInfo) -> Path:
    """A tar file of empty members."""
    with tarfile.open(path, "w") as archive:
        for one in members:
            archive.addfile(one, io.BytesIO())
    return path


@pytest.mark.parametrize(
    "hostile",
    [
        member("../outside"),
        member("/tmp/outside"),
        member("a/../../outside"),
        member("link", tarfile.SYMTYPE, "/etc/passwd"),
        member("link", tarfile.LNKTYPE, "../secret"),
        member("device", tarfile.CHRTYPE),
        member("pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda one: f"{one.name}-{one.type.decode()}",
)
def test_a_member_that_is_no_file_of_the_folder_is_refused(hostile, tmp_path) -> None:
    pack = write_tar(tmp_path / "engine.tar", hostile)
    with pytest.raises(ArtifactError, match=r"engine\.tar: member '.*' is no file of its folder"):
        unpack(pack)
    assert [path.name for path in tmp_path.rglob("*")] == ["engine.tar"]


@pytest.mark.parametrize("content", [b"", b"no tar", b"\x1f\x8b" + b"0" * 600, None])
def test_what_is_no_pack_or_was_cut_is_refused(content: bytes | None, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"0" * 5000)
    write_manifest(tmp_path / "engine.json", variant="quick")
    pack = tmp_path / "cut.tar"
    write_pack(pack, tmp_path / "engine.json")
    pack.write_bytes(pack.read_bytes()[:3000] if content is None else content)
    with pytest.raises(ArtifactError, match=r"cut"):
        unpack(pack)
