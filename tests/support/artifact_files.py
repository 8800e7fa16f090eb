"""Artifacts that tests write or change as a job would, and as nothing but damage would."""

import json
from pathlib import Path
from typing import Any

from tightrope.artifacts.content import write_artifact

DIGESTS = ("content_sha256", "made_with")


def written(path: Path, document: Any) -> Path:
    """Write a document as a job does, as plain JSON what no job would write; return its path.

    It may have been read as plain JSON from another artifact.
    """
    if isinstance(document, dict) and (left := without_digests(document)):
        write_artifact(path, left)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
    return path


def without_digests(document: dict[str, Any]) -> dict[str, Any]:
    """The document in a JSON file that a job wrote, read as plain JSON."""
    return {name: value for name, value in document.items() if name not in DIGESTS}


def rewrite(path: Path, **fields: Any) -> Path:
    """Give fields of an artifact other values."""
    return written(path, {**json.loads(path.read_text()), **fields})


def flip(path: Path, place: int) -> None:
    """Change one byte of a file."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
