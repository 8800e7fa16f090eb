"""JSON that jobs write: whether it is still what was written, and what it was made with.

Two fields come first in such a file, on lines of their own. `content_sha256` is the SHA-256 of all
that follows its line. `made_with` is a digest of the job that wrote the file: of its settings, its
code and its inputs, see `made_with`; null where no job did. They find damage and mix-ups: who can
write the file can write these too. No reader sees them as a part of the document.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import (
    digest,
    json_bytes,
    json_document,
    open_regular,
    read_bytes,
    sha256,
    writing,
)
from tightrope.errors import ArtifactError

BEGIN = b'{\n "content_sha256": "'
END = b'",\n'
DIGEST_LENGTH = 64
FIELDS = re.compile(BEGIN + rb"([0-9a-f]{64})" + END + rb' "made_with": (?:null|"\w*"),\n')
# all of these fields are within
FIELDS_BYTES = 256
SAYS = re.compile(rb'"made_with": "(\w+)"')
# variable of the environment of a job and its children: the value of that field
MADE_WITH = "TIGHTROPE_MADE_WITH"
# its value for what is not made here: as current as what was made with the settings of now
IMPORTED = "imported"
# beside an ONNX file, which has no such fields: a JSON file that has
BESIDE = ".json"


def write_artifact(path: Path | str, document: Mapping[str, Any]) -> None:
    """Write a JSON document as `write_json` does, with the digests; it has at least one field."""
    with writing_artifact(path) as stream:
        stream.write(json_bytes(document).removeprefix(b"{\n"))


@contextmanager
def writing_artifact(path: Path | str) -> Iterator[BufferedRandom]:
    """Write what follows the digests in a JSON object; the stream can be read and sought too."""
    with writing(path) as stream:
        stream.write(BEGIN + b"0" * DIGEST_LENGTH + END)
        content = stream.tell()
        stream.write(f" {made_with_here()},\n".encode())
        yield stream
        stream.seek(content)
        found = hashlib.file_digest(stream, "sha256").hexdigest()
        stream.seek(len(BEGIN))
        stream.write(found.encode())


def read_artifact(path: Path | str, kind: Any = Any) -> Any:
    """Return the JSON document that `write_artifact` wrote; raises as `checked` and `read_json`."""
    return json_document(path, checked(path, read_bytes(path)), kind)


def checked(path: Path | str, content: bytes, *, of_any_version: bool = False) -> bytes:
    """Return the JSON in the content of file `path` without its digests.

    Raises ArtifactError where the content is not what was written, or has no digest; with
    `of_any_version`, what has none is returned as it is.
    """
    fields = FIELDS.match(content)
    if fields is None:
        if of_any_version and b"content_sha256" not in content[:FIELDS_BYTES]:
            return content
        raise ArtifactError(
            f"{path}: without a digest of its content (of an earlier version, changed by hand or "
            "damaged); delete it and run again"
        )
    hashed = memoryview(content)[fields.end(1) + len(END) :]
    if hashlib.sha256(hashed).hexdigest() != fields[1].decode():
        raise ArtifactError(
            f"{path}: its content is not what was written (changed by hand or damaged); delete it "
            "and run again"
        )
    return b"{\n" + content[fields.end() :]


def made_with(job: Any) -> str:
    """Return a digest of a job of Snakemake: of its params, and of its inputs and their content.

    It is the same in the job and where the job is planned, and wherever the folder is. The input
    `judged` only comes first: what it holds makes nothing again.
    """
    named = [paths for name, paths in job.input.items() if name != "judged"]
    paths = [path for one in named for path in ([one] if isinstance(one, str) else one)]
    inputs = sorted(map(name_and_content, paths))
    return digest({"params": dict(job.params.items()), "inputs": inputs})


def name_and_content(path: str) -> tuple[str, str]:
    """Return the path of an input, from this folder where it is inside, and a digest of it.

    That is the one that the file begins with, or its SHA-256.
    """
    name = path.removeprefix(f"{Path.cwd()}/")
    try:
        with open_regular(path) as stream:
            if fields := FIELDS.match(stream.read(FIELDS_BYTES)):
                return name, fields[1].decode()
            stream.seek(0)
            return name, hashlib.file_digest(stream, "sha256").hexdigest()
    except (ArtifactError, OSError):
        return name, "unreadable"  # what reads it says why


def made_with_here() -> str:
    """Return the field `made_with` of what this process writes."""
    return f'"made_with": {json.dumps(os.environ.get(MADE_WITH))}'


def made_with_of(path: str) -> str | None:
    """Return what an output of a job says that it was made with, None where it says nothing."""
    try:
        if path.endswith(".onnx"):
            path, onnx = f"{path}{BESIDE}", path
            if read_artifact(path, dict[str, str])["sha256"] != sha256(onnx):
                return None
        with open_regular(path) as stream:
            said = SAYS.search(stream.read(FIELDS_BYTES))
    except ArtifactError:
        return None
    return said and said[1].decode()
