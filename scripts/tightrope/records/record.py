"""Base of all records of measurements: raw samples and predictions, no statistics."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypedDict

import msgspec

from tightrope.artifacts.content import read_artifact, write_artifact
from tightrope.errors import ArtifactError
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.statistics import Interval, speedup, trimmed_mean

SCHEMA = 5
# `variant` of the records of a training and of a race
TRAINING, RACE = "training", "race"
# fewest undisturbed rounds for numbers
FEWEST_ROUNDS = 6


# no field of what lists in records hold is required: a record has what its job got to know
class Counters(TypedDict, total=False):
    """What the kernel counted of a pair or block, see `interference.of_pair`."""

    waited: float | None
    stolen: float
    preempted: float
    window: int
    throttled: list[str]
    computing_processes: int | None
    sm_clocks_mhz: list[int | None]


class WarmUp(TypedDict, total=False):
    """The warm-up of one load."""

    calls: int
    seconds: float
    stable: bool | None


class Sized(TypedDict, total=False):
    """A shape: `sequence` for texts, `height` and `width` for images.

    `tokens` is how many of the sequence are no padding; without it all of them.
    """

    batch: int
    sequence: int
    tokens: int
    height: int
    width: int


@dataclass(kw_only=True)
class Record:
    """Fields of every record: model and variant, status, host, libraries and time.

    `CONTENTS` maps a field that is a list to the type of its value.
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


class Round(TypedDict, total=False):
    """A block of calls of each engine, measured in random order.

    `blocks_s` holds, for each engine, the seconds per call; `foreign_cores` are the cores of their
    processors that other programs used meanwhile.
    """

    blocks_s: list[list[float]]
    foreign_cores: float


def undisturbed_rounds(rounds: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rounds that no other load disturbed."""
    return [one for one in rounds if one["foreign_cores"] <= MAX_FOREIGN_CORES]


def blocks_of(rounds: Sequence[dict[str, Any]], engine: int) -> list[list[float]]:
    """Return the blocks of an engine, by its index."""
    return [one["blocks_s"][engine] for one in rounds]


def call_seconds(blocks: Sequence[list[float]]) -> Interval:
    """Return the seconds per call of an engine with their interval."""
    return trimmed_mean([statistics.median(block) for block in blocks])


def time_ratio(blocks: list[list[float]], reference: list[list[float]]) -> Interval:
    """Return the time of an engine over that of another, from the rounds of both.

    Each was loaded once, so the interval includes the variation between loads of one engine.
    """
    return speedup(reference, blocks, loads=1)
