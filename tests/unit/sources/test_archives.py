import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from archive_files import pack
from tightrope.errors import TightropeError
from tightrope.sources import local
from tightrope.sources.local import is_archive, read_archive

FILES = {"cat/1.jpg": b"one" * 500, "dog/2.jpg": b"two" * 700}
KINDS = pytest.mark.parametrize("kind", ["a.zip", "a.tar", "A.TAR.GZ"])


def unpacked(file: Path) -> dict[str, bytes | None]:
    return {name: read() if read else None for name, read in read_archive(file)}


def error_of(file: Path) -> str:
    with pytest.raises(TightropeError) as caught:
        unpacked(file)
    said = str(caught.value)
    assert said.startswith(str(file))
    return said.removeprefix(str(file))


@pytest.mark.parametrize("kind", ["a.zip", "a.tar", "a.tgz", "A.TAR.GZ"])
def test_each_member_is_read_and_folders_have_no_content(tmp_path: Path, kind: str) -> None:
    assert is_archive(tmp_path / kind)
    assert unpacked(pack(tmp_path / kind, FILES)) == FILES
    assert [path.name for path in tmp_path.iterdir()] == [kind], "nothing is unpacked"
    (tmp_path / "empty").mkdir()
    if kind.endswith("zip"):
        with zipfile.ZipFile(tmp_path / kind, "w") as archive:
            archive.write(tmp_path / "empty", "empty")
    else:
        with tarfile.open(tmp_path / kind, "w" if kind == "a.tar" else "w:gz") as tar:
            tar.add(tmp_path / "empty", "./empty")
    assert unpacked(tmp_path / kind) == {"empty": None}


@KINDS
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_paths_out_of_it_and_names_that_come_twice_are_refused(tmp_path: Path, kind: str) -> None:
    for name, said in (
        ("../outside.jpg", "leads out of the archive"),
        ("cat/../../x.jpg", "leads out of the archive"),
        ("/etc/passwd", "leads out of the archive"),
        ("./cat/1.jpg", "/cat/1.jpg: is in the archive twice; pack it again"),
    ):
        assert said in error_of(pack(tmp_path / kind, {**FILES, name: b"x"}))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, None])
def test_a_link_or_device_is_refused(tmp_path: Path, kind: bytes | None) -> None:
    name = "cat/link.jpg"
    if kind is None:
        info = zipfile.ZipInfo(name)
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr(info, "/etc/passwd")
    else:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        with tarfile.open(tmp_path / "a.tar", "w") as tar:
            tar.addfile(member)
    (file,) = tmp_path.iterdir()
    assert error_of(file).startswith(f"/{name}: links and devices")


@KINDS
def test_a_member_and_an_archive_that_unpack_to_too_much_are_not_read(tmp_path, kind, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(local, "LARGEST_FILE", 2000)
        said = error_of(pack(tmp_path / kind, {**FILES, "bomb.jpg": bytes(2001)}))
        assert said.startswith("/dog/2.jpg: 2100 bytes; at most 2000")
    monkeypatch.setattr(local, "ALWAYS_ALLOWED", 3000)
    monkeypatch.setattr(local, "LARGEST_RATIO", 0.01)
    assert "unpacks to more than 3000 bytes" in error_of(pack(tmp_path / kind, FILES))


def test_a_header_of_a_tar_file_that_asks_for_all_the_memory_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("./PaxHeaders/1.jpg")
    info.type, info.size = tarfile.XHDTYPE, 2**40
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(10_240))
    assert f"a header of {2**40} bytes" in error_of(tmp_path / "a.tar")


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        # another size than there is, and a password
        ("a.zip", lambda all: all.replace((3000).to_bytes(4, "little"), bytes([9, 0, 0, 0]))),
        ("a.zip", lambda all: flipped(all, all.rindex(b"PK\x01\x02") + 8)),
        # a header that must not be taken for the end
        ("a.tar", lambda all: flipped(all, 10)),
        ("a.tar", lambda all: flipped(all, 10 * 3584 + 10)),
        *((kind, lambda _: b"a text, no archive") for kind in ("a.zip", "a.tar", "a.tgz")),
        *(
            (kind, lambda all, part=part: all[: int(len(all.rstrip(b"\0")) * part)])
            for kind in ("a.zip", "a.tar", "a.tgz")
            for part in (0, 0.99)
        ),
    ],
)
def test_a_damaged_archive_is_one_line(tmp_path, kind, damage) -> None:
    file = pack(tmp_path / kind, {f"cat/{i}.jpg": bytes([i + 1]) * 3000 for i in range(20)})
    file.write_bytes(damage(file.read_bytes()))
    assert "cannot be read as an archive" in error_of(file)


def test_an_error_of_who_reads_is_not_one_of_the_archive(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"):
        for _ in read_archive(pack(tmp_path / "a.tar", FILES)):
            raise ValueError("mine")
