"""What was measured, as it was measured: raw samples and predictions, no statistics."""

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


@dataclass(kw_only=True)
class LatencyRecord(Record):
    """Times of one variant, and of its baseline in blocks that alternate with its own.

    Each of `shapes` holds the shape (`batch`, `sequence`), `first_call_s` (the first of that
    shape) and what `comparison.compare` gives: `warmups`, one for each load of the engine;
    `blocks_s` and `baseline_blocks_s`, one list of seconds a call for each block, blocks of the
    same index measured next to each other; `device_s`, seconds of calls on inputs that are on the
    GPU, None on the CPU; `pairs`, what was counted of each pair (`interference.of_pair`), and
    `foreign_cores`, what other programs used in each window; `stop`, why no more was measured.
    `lost_s` are the seconds that other load cost, `loudest` the cores that the loudest programs
    used, by name.
    `baseline` and its blocks are None for the baseline itself, or where the baseline cannot run:
    then `baseline_failed` says why. `plan` is `latency` of the configuration, `processors` those
    to which both processes were pinned, `reference` the fixed workload `before` and `after`.
    """

    threads: int
    plan: dict[str, Any]
    processors: list[int]
    baseline: str | None = None
    baseline_failed: str | None = None
    reference: dict[str, Any] | None = None
    lost_s: float = 0.0
    loudest: dict[str, float] = field(default_factory=dict)
    import_s: float | None = None
    load_s: float | None = None
    first_call_s: float | None = None
    peak_rss_bytes: int | None = None
    shapes: list[dict[str, Any]] = field(default_factory=list)


@dataclass(kw_only=True)
class RaceRecord(Record):
    """Times of the finalists of a model on one device, all of them in the same rounds.

    Each of `heats` holds `shapes`: of those finalists whose memory fitted together, at each shape
    what `RaceAtShape.recorded` gives. `left_out` has by variant why one died;
    `engines_sha256` their manifests; `plan` is `latency` and `decision` the section of that name of
    the configuration.
    """

    device: str
    threads: int
    plan: dict[str, Any]
    decision: dict[str, Any]
    processors: list[int]
    engines_sha256: dict[str, str]
    left_out: dict[str, str] = field(default_factory=dict)
    heats: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    lost_s: float = 0.0
    loudest: dict[str, float] = field(default_factory=dict)


@dataclass(kw_only=True)
class AccuracyRecord(Record):
    """Every prediction on the evaluation split, in its order; of a slow engine the first ones.

    `margins` are the highest logit less the second highest; `logits` are [examples, classes], to
    six digits. `labels` is None, and nothing was predicted, when the data has no labels.
    `data_sha256` is the split's.
    """

    data_sha256: str | None = None
    labels: list[int] | None = None
    predictions: list[int] = field(default_factory=list)
    margins: list[float] = field(default_factory=list)
    logits: list[list[float]] = field(default_factory=list)
