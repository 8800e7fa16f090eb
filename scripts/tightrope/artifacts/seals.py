"""Seals: which files of this folder its own jobs have written.

Manifests hold the digests of other files, but who can change a file can change its manifest too. So
manifests, records and ONNX files are sealed when they are written: beside Snakemake's own state,
outside `artifacts/` and `reports/`, is the HMAC-SHA256 (RFC 2104) of their path and their digest,
with a secret of this folder that only its owner can read. Files elsewhere have no seals, and where
there is no secret nothing is sealed or refused: only runs make one.

Where files are in an object store, jobs have the secret from their environment, and the seal of a
file is kept beside it: `latency.json.seal`.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tightrope.artifacts.files import (
    json_bytes,
    json_document,
    read_bytes,
    sha256,
    storage_errors,
    write_bytes,
)
from tightrope.errors import ArtifactError

SECRET = Path(".snakemake/tightrope/secret")
SEALS = Path(".snakemake/tightrope/seals")
SECRET_BYTES = 32
# a secret in hex digits, in the place of that of the folder
SECRET_VARIABLE = "TIGHTROPE_SECRET"
# the folder of the copies of what is in storage, and how the seal beside such a file ends
COPIES_VARIABLE = "TIGHTROPE_COPIES"
SUFFIX = ".seal"
SNAKEMAKE = ".snakemake"
# where sealed files are, below the folder of the run or the prefix of a module, and which of them
FOLDERS = ("artifacts", "reports")
SUFFIXES = (".json", ".onnx")


class Place(NamedTuple):
    """What the seals of a file call it, wherever a job has it, and the file that holds them."""

    name: str
    seals: Path
    stored: bool = False


def make_secret() -> None:
    """Make the secret of this folder where it has none and none is given.

    To be called by who has the lease of the folder. Raises StorageError, and ArtifactError for a
    secret that is none.
    """
    if folder_secret() is not None:
        return
    with storage_errors(SECRET):
        SECRET.parent.mkdir(parents=True, exist_ok=True)
        # complete before it has its name: the run may be killed in between
        part = SECRET.with_name(".secret.part")
        part.unlink(missing_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(SECRET_BYTES))
        part.replace(SECRET)


def pass_on_secret() -> None:
    """Give the secret to the jobs of this process, on whatever machine; raises ArtifactError."""
    if (secret := folder_secret()) is not None:
        os.environ[SECRET_VARIABLE] = secret.hex()


def seal(path: Path | str, content: bytes | None = None) -> None:
    """Seal a file as written by a job of this folder, with `content` before it is written.

    The seal of what it held before stays valid: a job may be killed before it writes the file.
    """
    place, secret = sealed_place(path), folder_secret()
    if place is None or secret is None:
        return
    new, before = seal_of(place, digest_of(path, content), secret), seals_at(place)[:1]
    if [new] != before:
        write_bytes(place.seals, b"\n".join([new, *before]))


def require_sealed(path: Path | str, content: bytes | None = None) -> None:
    """Raise ArtifactError unless a job of this folder wrote the file just as it is.

    `content` saves reading it again.
    """
    place, secret = sealed_place(path), folder_secret()
    if place is None or secret is None:
        return
    wanted = seal_of(place, digest_of(path, content), secret)
    if any(hmac.compare_digest(one, wanted) for one in seals_at(place)):
        return
    if place.stored:
        raise ArtifactError(
            f"{place.name}: changed in storage, or written by a run with another secret; delete it "
            f"there and run again, or set {SECRET_VARIABLE} to that secret (docs/storage.md)"
        )
    raise ArtifactError(
        f"{path}: changed since a run here wrote it, or brought from elsewhere; delete it and "
        "run again, or trust all files here: python tools/reseal.py"
    )


def write_sealed_json(path: Path | str, document: Any) -> None:
    """Write a JSON document as `write_json` does, and seal it."""
    write_sealed(path, json_bytes(document))


def write_sealed(path: Path | str, content: bytes) -> None:
    """Write a file as `write_bytes` does, and seal it."""
    seal(path, content)
    write_bytes(path, content)


def read_sealed_json(path: Path | str, kind: Any = Any) -> Any:
    """Return the JSON document in `path`; raises as `require_sealed` and `read_json` do."""
    content = read_bytes(path)
    require_sealed(path, content)
    return json_document(path, content, kind)


def files_to_seal(folders: Iterable[Path | str] = FOLDERS) -> list[Path]:
    """Return the files in these folders that are sealed, or are to be."""
    files = [path for folder in folders for path in sorted(Path(folder).rglob("*"))]
    return [path for path in files if path.suffix in SUFFIXES and path.is_file()]


def is_sealed(path: str) -> bool:
    """Return whether a file at this path is one that jobs seal."""
    return path.endswith(SUFFIXES) and not {*FOLDERS}.isdisjoint(Path(path).parts[:-1])


def sealed_place(path: Path | str) -> Place | None:
    """Return the place of a file in the folder of the run or in storage, None for another."""
    if copies := os.environ.get(COPIES_VARIABLE):
        copy = Path(path).parent.resolve() / Path(path).name
        if copy.is_relative_to(copies):
            return Place(str(copy.relative_to(copies)), Path(f"{path}{SUFFIX}"), stored=True)
    # not resolved: artifacts may be a link to a larger disk
    name = os.path.normpath(path)
    if name.startswith((os.sep, os.pardir)):
        name = os.path.relpath(name)
    above = name.split("/")[:-1]
    if os.pardir in above or SNAKEMAKE in above or {*FOLDERS}.isdisjoint(above):
        return None
    return Place(name, SEALS / name)


def folder_secret() -> bytes | None:
    """Return the secret of this folder, None where it has none; raises ArtifactError."""
    if given := os.environ.get(SECRET_VARIABLE):
        if not re.fullmatch(f"[0-9a-f]{{{2 * SECRET_BYTES}}}", given):
            raise ArtifactError(f"{SECRET_VARIABLE}: not {2 * SECRET_BYTES} hex digits; unset it")
        return bytes.fromhex(given)
    try:
        found = os.lstat(SECRET)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return secret_of(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=1)
def secret_of(*_version: int) -> bytes:
    """Return the secret in SECRET, read once per version of that file; raises ArtifactError."""
    secret = read_bytes(SECRET)
    if len(secret) != SECRET_BYTES:
        raise ArtifactError(f"{SECRET}: not 32 bytes; delete it and run: python tools/reseal.py")
    return secret


def seals_at(place: Place) -> list[bytes]:
    """Return the seals of a place, the newest first."""
    return read_bytes(place.seals).split(b"\n") if place.seals.is_file() else []


def digest_of(path: Path | str, content: bytes | None) -> str:
    """Return the SHA-256 of the content, or of the file."""
    return sha256(path) if content is None else hashlib.sha256(content).hexdigest()


def seal_of(place: Place, digest: str, secret: bytes) -> bytes:
    """Return the seal of a file with this SHA-256 at this place, in hex digits."""
    message = f"{place.name}\0{digest}".encode(errors="surrogateescape")
    return hmac.new(secret, message, hashlib.sha256).hexdigest().encode()
