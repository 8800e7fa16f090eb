"""Images, archives of images, and names of another's making."""

import io
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

from archive_files import pack
from hostile_cases import DATA, Case, Sandbox
from hostile_tables import link
from small_images import encoded, noise

Make = Callable[[Sandbox], object]
IMAGE = {
    "task": "image-classification",
    "splits": {"train": 4, "evaluation": 4},
    "checkpoint": "scratch:convnext?num_stages=2&hidden_sizes=[8,16]&depths=[1,1]&image_size=16",
}
POSTSCRIPT = (
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(%pipe%PAYLOAD) (r) file closefile\n"
)
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>'


def image(seed: int = 0) -> bytes:
    """Return a good image."""
    return encoded(noise(32, 32, seed=seed))


def good_images(sandbox: Sandbox, folder: str = "pics") -> None:
    """Write eight good images of two classes."""
    for seed in range(8):
        (sandbox / f"{folder}/{('cat', 'dog')[seed % 2]}/{seed}.png").write_bytes(image(seed))


def archive(
    name: str, file: str, make: Callable[[Sandbox, Any], object], *, harmless: bool = False
) -> Case:
    """Return a case of an archive of class folders; `make` adds to it."""

    def write(sandbox: Sandbox) -> dict[str, Any]:
        good = {f"{('cat', 'dog')[seed % 2]}/{seed}.png": image(seed) for seed in range(8)}
        make(sandbox, pack(sandbox / file, good))
        return {**IMAGE, "data": f"files:{file}"}

    return Case(name, write, (file,), DATA, harmless)


def zipped(name: str, content: bytes, mode: int = 0) -> Callable[[Sandbox, Any], None]:
    """Return what adds a member to a zip file."""

    def make(sandbox: Sandbox, file: Any) -> None:
        with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as opened:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            opened.writestr(info, content)

    return make


def tarred(
    name: str, kind: bytes, target: str = "", size: int = 0
) -> Callable[[Sandbox, Any], None]:
    """Return what adds a member of that kind to a tar file."""

    def make(sandbox: Sandbox, file: Any) -> None:
        with tarfile.open(file, "a") as opened:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, target, size
            opened.addfile(info, io.BytesIO(bytes(size)))

    return make


def bomb(sandbox: Sandbox, file: Any) -> None:
    """Add 200 members of 60 MB of zeros."""
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as opened:
        for number in range(200):
            opened.writestr(f"cat/b{number}.txt", bytes(60_000_000 if number < 20 else 10))
    if file.stat().st_size > 10**8:
        raise ValueError("the bomb is too large for a study")


ARCHIVES = [
    archive("a member above the archive", "a.zip", zipped("../../outside/evil.png", image())),
    archive("an absolute member", "a.zip", zipped("/tmp/evil/cat/1.png", image())),
    archive("a link in a zip file", "a.zip", zipped("cat/l.png", b"/etc/passwd", 0o120777)),
    archive("a device in a zip file", "a.zip", zipped("cat/d.png", b"", 0o020666)),
    archive("a member twice", "a.zip", zipped("cat/0.png", image(99))),
    archive("a bomb", "a.zip", bomb),
    archive("a name that controls a terminal", "a.zip", zipped("\x1b[2J/1.png", image(50))),
    archive(
        "a member above a tar file", "a.tar", tarred("../../outside/evil.png", tarfile.REGTYPE)
    ),
    archive(
        "an absolute member of a tar file", "a.tar", tarred("/tmp/evil/1.png", tarfile.REGTYPE)
    ),
    archive(
        "a symbolic link in a tar file",
        "a.tar",
        tarred("cat/l.png", tarfile.SYMTYPE, "/etc/passwd"),
    ),
    archive(
        "a hard link in a tar file",
        "a.tar",
        tarred("cat/h.png", tarfile.LNKTYPE, "../outside/private.png"),
    ),
    archive("a device in a tar file", "a.tar", tarred("cat/d.png", tarfile.CHRTYPE)),
    archive("a pipe in a tar file", "a.tar", tarred("cat/p.png", tarfile.FIFOTYPE)),
    archive("a member of 100 MB", "a.tar", tarred("cat/b.png", tarfile.REGTYPE, size=10**8)),
    archive("half an archive", "a.zip", lambda _, file: file.write_bytes(file.read_bytes()[:-30])),
    archive("half a tar file", "a.tar", lambda _, file: file.write_bytes(file.read_bytes()[:3000])),
]


def pictures(name: str, make: Make, *named: str, harmless: bool = False, **keys: Any) -> Case:
    """Return a case of class folders beside what `make` adds."""

    def write(sandbox: Sandbox) -> dict[str, Any]:
        good_images(sandbox)
        make(sandbox)
        return {**IMAGE, "data": "files:pics", **keys}

    return Case(name, write, named or ("pics",), DATA, harmless)


def file(path: str, content: bytes) -> Make:
    """Return what writes a file; PAYLOAD in it becomes the shell command."""
    return lambda sandbox: (sandbox / path).write_bytes(
        content.replace(b"PAYLOAD", sandbox.payload.encode())
    )


def png(width: int, height: int, more: bytes = b"") -> bytes:
    """Return a PNG file that says that it has this size."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(1000))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + more
        + chunk(b"IDAT", body)
        + chunk(b"IEND", b"")
    )


def image_rows(*names: str) -> Make:
    """Return what writes a table of images with these names beside good ones."""

    def make(sandbox: Sandbox) -> None:
        good = [f"pics/{('cat', 'dog')[seed % 2]}/{seed}.png,{seed % 2}" for seed in range(8)]
        text = "\n".join(["image,label", *good, *(f"{name},1" for name in names), ""])
        (sandbox / "a.csv").write_text(text.replace("OUTSIDE", str(sandbox.outside)))

    return make


def link_to(path: str, target: str) -> Make:
    """Return what makes a link to a place outside the folder of the run."""
    return lambda sandbox: (sandbox / path).symlink_to(
        target.replace("OUTSIDE", str(sandbox.outside))
    )


TABLE = {"data": "files:a.csv", "columns": {"image": "image", "label": "label"}}
IMAGES = [
    pictures("a pipe among images", link("pics/cat/p.png", "pipe")),
    pictures("/dev/zero among images", link("pics/cat/z.png", "/dev/zero")),
    pictures("a link to a private file", link_to("pics/cat/l.png", "OUTSIDE/private.png")),
    pictures("a link to a folder outside", link_to("pics/bird", "OUTSIDE")),
    pictures("a link to the root", link_to("pics/all", "/")),
    pictures("a link to the folder above", link_to("pics/cat/up", ".."), harmless=True),
    pictures("50,000 x 50,000 pixels", file("pics/cat/b.png", png(50_000, 50_000))),
    pictures("2^31 pixels a side", file("pics/cat/b.png", png(2**31 - 1, 2**31 - 1))),
    pictures("PostScript as an image", file("pics/cat/e.png", POSTSCRIPT)),
    pictures("SVG as an image", file("pics/cat/s.png", SVG)),
    pictures("a pickle as an image", file("pics/cat/n.png", b"\x80\x04cos\nsystem\n")),
    pictures("half an image", file("pics/cat/h.png", image()[:300])),
    pictures("a file of 100 MB", file("pics/cat/l.png", bytes(10**8))),
    pictures("a row with an absolute path", image_rows("OUTSIDE/private.png"), "a.csv", **TABLE),
    pictures("a row above the folder", image_rows("../outside/private.png"), "a.csv", **TABLE),
    pictures("a row with a URL", image_rows("http://127.0.0.1:9/x.png"), "a.csv", **TABLE),
    pictures("a row with NUL", image_rows("a\0b.png"), "a.csv", **TABLE),
]


def folder(name: str, label: str, *, harmless: bool = False) -> Case:
    """Return a case of a class folder with that name."""
    return pictures(
        name,
        lambda sandbox: [
            (sandbox / f"pics/{label}/{seed}.png").write_bytes(image(seed))
            for seed in range(20, 24)
        ],
        harmless=harmless,
    )


NAMES = [
    folder("a class that controls a terminal", "\x1b[2J\x1b]0;x\x07"),
    folder("a class of HTML", "<img src=x onerror=alert(1)>", harmless=True),
    folder("a class with a line break", "a\nerror: b"),
    folder("a class of 255 letters", "x" * 255, harmless=True),
    folder("a class that is an option", "--config", harmless=True),
    folder("a class that is a command", "$(touch marker)", harmless=True),
    folder("a class with a wildcard", "{model}", harmless=True),
    folder("a class that is not UTF-8", os.fsdecode(b"caf\xe9")),
    folder("a class written from right to left", "\u202egnp.tac"),
]
