"""Base of all records of measurements: raw samples and predictions, no statistics.

And what of a measurement counts, and why not: decided once, for summary, page and repetition.
"""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar

import msgspec

from tightrope.artifacts.content import checked, write_artifact
from tightrope.artifacts.files import json_document, read_bytes
from tightrope.errors import ArtifactError
from tightrope.machine.interference import (
    MAX_FOREIGN_CORES,
    SLOWDOWNS,
    Counters,
    disturbance,
    in_words,
)
from tightrope.statistics import Interval, speedup, trimmed_mean

SCHEMA = 6
# `variant` of the records of a training and of a race
TRAINING, RACE = "training", "race"
# fewest undisturbed rounds for numbers
FEWEST_ROUNDS = 6
Call = TypeVar("Call")
BUSIEST = "; the busiest: "


def now() -> str:
    """Return the time as in records: ISO 8601 to the second, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class WarmUp(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The warm-up of one load, see `TimedEngine.warm_up`."""

    calls: int
    seconds: float
    stable: bool | None


class Sized(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A shape: `sequence` for texts, `height` and `width` for images.

    `tokens` is how many of the sequence are no padding; without it all of them.
    """

    batch: int
    sequence: int | None = None
    tokens: int | None = None
    height: int | None = None
    width: int | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that it has, by name."""
        known = ((name, getattr(self, name)) for name in Sized.__struct_fields__)
        return {name: size for name, size in known if size is not None}


class Record(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Fields of every record: model and variant, status, host, libraries and time."""

    model: str
    variant: str
    status: Literal["ok", "failed"] = "ok"
    reason: str | None = None
    transient: bool | None = None
    host: dict[str, Any]
    libraries: dict[str, str | None]
    engine_sha256: str | None = None
    measured: str = msgspec.field(default_factory=now)
    schema: int = SCHEMA

    def write(self, path: Path | str) -> None:
        """Write the record as sorted JSON."""
        write_artifact(path, msgspec.to_builtins(self))

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Return the record in `path`; raise ArtifactError for another kind, schema or type."""
        content = checked(path, read_bytes(path))
        try:
            record: Self = msgspec.json.decode(content, type=cls)
        except msgspec.DecodeError as error:
            document = json_document(path, content)  # says what is no JSON
            known = isinstance(document, dict) and set(document) == {*cls.__struct_fields__}
            if not known or document["schema"] != SCHEMA:
                raise of_another_version(path, cls) from error
            raise ArtifactError(f"{path}: {error}; delete it, run again") from error
        if record.schema != SCHEMA:
            raise of_another_version(path, cls)
        record.read_beside(path)
        return record

    def read_beside(self, path: Path | str) -> None:
        """Read what belongs to the record in `path` and is in another file: nothing here."""


class TimedRecord(Record, kw_only=True):
    """A record of times on so many threads.

    `lost_s` are the seconds lost to other load, `busiest` the cores that the busiest programs used,
    by name.
    """

    threads: int
    lost_s: float = 0.0
    busiest: dict[str, float] = {}


def of_another_version(path: Path | str, kind: type[Record]) -> ArtifactError:
    """Return the error of a record in `path` that was written by another version."""
    return ArtifactError(f"{path}: no {kind.__name__} of this version; delete it, run again")


def require_engine(path: Path | str, measured: str | None, in_use: str | None) -> None:
    """Raise ArtifactError where record `path` is of another engine than the one in use, if any.

    Both are the SHA-256 of an engine.json.
    """
    if in_use is not None and measured != in_use:
        raise ArtifactError(
            f"{path}: measured with another engine than the one in use; delete it and run again"
        )


class Round(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A block of calls of each engine, measured in random order.

    `blocks_s` holds, for each engine, the seconds per call; `foreign_cores` are the cores of their
    processors that other programs used meanwhile.
    """

    blocks_s: list[list[float]]
    foreign_cores: float


def undisturbed_rounds(rounds: Sequence[Round]) -> list[Round]:
    """Return the rounds that no other load disturbed."""
    return [one for one in rounds if one.foreign_cores <= MAX_FOREIGN_CORES]


def blocks_of(rounds: Sequence[Round], engine: int) -> list[list[float]]:
    """Return the blocks of an engine, by its index."""
    return [one.blocks_s[engine] for one in rounds]


def call_seconds(blocks: Sequence[list[float]]) -> Interval:
    """Return the seconds per call of an engine with their interval."""
    return trimmed_mean([statistics.median(block) for block in blocks])


def time_ratio(blocks: list[list[float]], reference: list[list[float]]) -> Interval:
    """Return the time of an engine over that of another, from the rounds of both.

    Each was loaded once, so the interval includes the variation between loads of one engine.
    """
    return speedup(reference, blocks, loads=1)


class Kept(NamedTuple, Generic[Call]):
    """The calls of a part of a measurement that count.

    `disturbed` says why they are too few where other load is the reason; with `provisional` all
    calls count nevertheless. `disturbed_calls` is the number of those that other load disturbed.
    """

    calls: list[Call]
    disturbed_calls: int = 0
    disturbed: str | None = None
    provisional: bool = False

    @property
    def counted(self) -> list[Call]:
        """The calls that a number may rest on, none where they are too few."""
        return [] if self.disturbed and not self.provisional else self.calls


def kept(
    calls: Sequence[Any], fewest: int, what: str, busiest: dict[str, float], *, accept: bool = False
) -> Kept[Any]:
    """Return what counts of these calls, each with its `foreign_cores`; see `kept_of`.

    `what` was measured while the `busiest` programs ran, which the reason names.
    """
    quiet = [one for one in calls if one.foreign_cores <= MAX_FOREIGN_CORES]

    def why() -> str:
        return disturbed_while(what, max(one.foreign_cores for one in calls), busiest)

    return kept_of(calls, quiet, fewest, why, accept=accept)


def kept_of(
    calls: Sequence[Call],
    quiet: list[Call],
    fewest: int,
    why: Callable[[], str],
    *,
    accept: bool = False,
) -> Kept[Call]:
    """Return what counts of calls of which those in `quiet` are undisturbed.

    A number needs `fewest` undisturbed calls; with `accept` disturbed ones do where they are too
    few. `why` says what disturbed them.
    """
    disturbed = len(calls) - len(quiet)
    if len(calls) < fewest or len(quiet) >= fewest:
        return Kept(quiet, disturbed)
    return Kept([*calls] if accept else quiet, disturbed, why(), accept)


def disturbed_while(what: str, cores: float, busiest: dict[str, float]) -> str:
    """Report that other load used `cores` cores during a measurement without pairs."""
    used = f"other programs or the hypervisor used up to {cores:.1f} cores of its processors"
    return f"{used} in {what}{named(busiest)}"


def named(busiest: dict[str, float]) -> str:
    """Return a sentence ending that names the programs with the highest load; empty without any."""
    return f"{BUSIEST}{in_words(busiest.items())}" if busiest else ""


CAUSES = {
    "waited": "their threads waited for a CPU that another program used",
    "preempted": "their threads were preempted by another program",
    "stolen": "the hypervisor took the processor",
    "throttled": "the GPU was throttled",
    "shared": "other processes on the GPU",
}
OF_THE_GPU = {"throttled", "shared"}


def causes(pairs: list[Counters], windows: list[float | None], busiest: dict[str, float]) -> str:
    """Name what disturbed the pairs, the most frequent first, and the busiest programs."""
    counts = Counter(filter(None, (disturbance(pair, windows) for pair in pairs)))
    reasons = SLOWDOWNS & {reason for pair in pairs for reason in pair.throttled or ()}
    why = {"throttled": f" ({', '.join(sorted(reasons))})"}
    words = " and ".join(CAUSES[one] + why.get(one, "") for one, _ in counts.most_common())
    return words + (named(busiest) if counts.keys() - OF_THE_GPU else "")
