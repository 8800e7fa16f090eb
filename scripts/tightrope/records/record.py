"""Base of all records of measurements: raw samples and predictions, no statistics."""

from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import msgspec

from tightrope.artifacts.content import read_artifact, write_artifact
from tightrope.errors import ArtifactError

SCHEMA = 5
# `variant` of the records of a training and of a race
TRAINING, RACE = "training", "race"


@dataclass(kw_only=True)
class Record:
    """Fields of every record: model and variant, status, host, libraries and time.

    `CONTENTS` maps a field that is a list to the type of its value, see `records/contents.py`.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {}

    model: str
    variant: str
    status: Literal["ok", "failed"] = "ok"
    reason: str | None = None
    transient: bool | None = None
    host: dict[str, Any]
    libraries: dict[str, str | None]
    engine_sha256: str | None = None
    measured: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    schema: int = SCHEMA

    def write(self, path: Path | str) -> None:
        """Write the record as sorted JSON."""
        write_artifact(path, asdict(self))

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Return the record in `path`; raise ArtifactError for another kind, schema or type.

        A field of the contents that their type does not name is kept.
        """
        document = read_artifact(path)
        names = {one.name for one in fields(cls)}
        known = isinstance(document, dict) and set(document) == names
        if not known or document["schema"] != SCHEMA:
            raise ArtifactError(f"{path}: no {cls.__name__} of this version; delete it, run again")
        place = ""
        try:
            record = msgspec.convert(document, cls)
            for name, kind in cls.CONTENTS.items():
                place = f"{name}: "
                msgspec.convert(document[name], kind)
        except msgspec.ValidationError as error:
            raise ArtifactError(f"{path}: {place}{error}; delete it, run again") from error
        record.read_beside(path)
        return record

    def read_beside(self, path: Path | str) -> None:
        """Read what belongs to the record in `path` and is in another file: nothing here."""


def require_engine(path: Path | str, measured: str | None, in_use: str | None) -> None:
    """Raise ArtifactError where record `path` is of another engine than the one in use, if any.

    Both are the SHA-256 of an engine.json.
    """
    if in_use is not None and measured != in_use:
        raise ArtifactError(
            f"{path}: measured with another engine than the one in use; delete it and run again"
        )
