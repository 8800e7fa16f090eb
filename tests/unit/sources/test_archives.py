import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from archive_files import pack
from tightrope.errors import TightropeError
from tightrope.sources import archives, regular
from tightrope.sources.archives import is_archive, read_archive

FILES = {"cat/1.jpg": b"one" * 500, "dog/2.jpg": b"two" * 700}
KINDS = pytest.mark.parametrize("kind", ["a.zip", "a.tar", "a.tgz", "A.TAR.GZ"])


def unpacked(file: Path) -> dict[str, bytes | None]:
    return {name: read() if read else None for name, read in read_archive(file)}


def error_of(file: Path) -> str:
    with pytest.raises(TightropeError) as caught:
        unpacked(file)
    said = str(caught.value)
    assert said.startswith(str(file))
    assert "\n" not in said
    return said.removeprefix(str(file))


@KINDS
def test_each_member_is_read(tmp_path: Path, kind: str) -> None:
    assert is_archive(tmp_path / kind)
    assert unpacked(pack(tmp_path / kind, FILES)) == FILES
    assert [path.name for path in tmp_path.iterdir()] == [kind], "nothing is unpacked"


def test_folders_are_members_without_content(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.mkdir("empty")
    (tmp_path / "empty").mkdir()
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(tmp_path / "empty", "./empty")
    for kind in ("a.zip", "a.tar"):
        assert unpacked(tmp_path / kind) == {"empty": None}


@KINDS
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("../outside.jpg", "leads out of the archive"),
        ("cat/../../x.jpg", "leads out of the archive"),
        ("/etc/passwd", "leads out of the archive"),
        ("./cat/1.jpg", "/cat/1.jpg: is in the archive twice; pack it again"),
    ],
)
def test_a_path_out_of_the_archive_and_a_name_that_comes_twice_are_refused(
    tmp_path: Path, kind: str, name: str, said: str
) -> None:
    assert said in error_of(pack(tmp_path / kind, {**FILES, name: b"x"}))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_a_link_or_device_of_a_tar_file_is_refused(tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo("cat/link.jpg")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    assert error_of(tmp_path / "a.tar").startswith("/cat/link.jpg: links and devices")


def test_a_link_of_a_zip_file_is_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("cat/link.jpg")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    assert error_of(tmp_path / "a.zip").startswith("/cat/link.jpg: links and devices")


@KINDS
def test_a_member_and_an_archive_that_unpack_to_too_much_are_not_read(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(archives, "LARGEST_FILE", 2000)
        said = error_of(pack(tmp_path / kind, {**FILES, "bomb.jpg": bytes(2001)}))
        assert said.startswith("/dog/2.jpg: 2100 bytes; at most 2000")
    monkeypatch.setattr(regular, "ALWAYS_ALLOWED", 3000)
    monkeypatch.setattr(regular, "LARGEST_RATIO", 0.01)
    assert "unpacks to more than 3000 bytes" in error_of(pack(tmp_path / kind, FILES))


def test_a_zip_file_that_lies_about_a_size_is_one_line(tmp_path: Path) -> None:
    file = pack(tmp_path / "a.zip", {"cat/1.jpg": bytes(100_000)})
    whole = file.read_bytes()
    file.write_bytes(whole.replace((100_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    assert "cannot be read as an archive" in error_of(file)


def test_a_header_of_a_tar_file_that_asks_for_all_the_memory_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("./PaxHeaders/1.jpg")
    info.type, info.size = tarfile.XHDTYPE, 2**40
    (tmp_path / "a.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(10_240))
    assert f"a header of {2**40} bytes" in error_of(tmp_path / "a.tar")


@KINDS
@pytest.mark.parametrize("part", [0.0, 0.5, 0.99])
def test_an_archive_that_is_cut_off_is_one_line(tmp_path: Path, kind: str, part: float) -> None:
    file = pack(tmp_path / kind, {f"cat/{i}.jpg": bytes([i]) * 3000 for i in range(20)})
    whole = file.read_bytes()
    content = whole.rstrip(b"\0") if kind == "a.tar" else whole
    for left in (whole[: int(len(content) * part)], b"a text, no archive"):
        file.write_bytes(left)
        assert "cannot be read as an archive" in error_of(file)


@pytest.mark.parametrize("place", [0, 20])
def test_a_damaged_header_of_a_tar_file_is_not_its_end(tmp_path: Path, place: int) -> None:
    file = pack(tmp_path / "a.tar", {f"cat/{i}.jpg": b"x" for i in range(40)})
    content = bytearray(file.read_bytes())
    content[place * 1024 + 10] ^= 1
    file.write_bytes(content)
    assert "cannot be read as an archive" in error_of(file)


def test_a_zip_file_with_a_password_is_one_line(tmp_path: Path) -> None:
    file = pack(tmp_path / "a.zip", FILES)
    content = bytearray(file.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = content.find(mark)
        while start >= 0:
            content[start + offset] |= 1
            start = content.find(mark, start + 1)
    file.write_bytes(content)
    assert "cannot be read as an archive" in error_of(file)


def test_an_error_of_who_reads_is_not_one_of_the_archive(tmp_path: Path) -> None:
    def refuse(read: Callable[[], bytes]) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        for _, read in read_archive(pack(tmp_path / "a.tar", FILES)):
            refuse(read)
