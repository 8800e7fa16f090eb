"""The record of a race: times of the finalists of a model on one device."""

from dataclasses import dataclass, field
from typing import Any

from tightrope.records.record import Record


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
