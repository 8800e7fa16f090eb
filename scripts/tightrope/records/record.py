"""What every record of a measurement says; raw samples and predictions, no statistics."""

from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from tightrope.artifacts.files import read_json, write_json
from tightrope.errors import ArtifactError

SCHEMA = 4
# in the place of a variant, in the records of a training and of a race
TRAINING, RACE = "training", "race"


@dataclass(kw_only=True)
class Record:
    """What every record says: of which variant, how it went, where, with what and when."""

    model: str
    variant: str
    status: str = "ok"
    reason: str | None = None
    transient: bool | None = None
    host: dict[str, Any]
    libraries: dict[str, str | None]
    engine_sha256: str | None = None
    measured: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    schema: int = SCHEMA

    def write(self, path: Path | str) -> None:
        """Write the record as sorted JSON."""
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """The record in `path`; raises ArtifactError when it is none of this kind."""
        document = read_json(path)
        names = {one.name for one in fields(cls)}
        known = isinstance(document, dict) and set(document) == names
        if not known or document["schema"] != SCHEMA:
            raise ArtifactError(f"{path}: no {cls.__name__} of this version; delete it, run again")
        return cls(**document)
