"""Record of a race: times of the finalists of a model on one device."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from tightrope.records.contents import Heat
from tightrope.records.record import Record


@dataclass(kw_only=True)
class RaceRecord(Record):
    """Times of the finalists of a model on one device, all measured in the same rounds.

    Each of `heats` covers finalists that fit in memory together; its `shapes` hold
    `RaceAtShape.recorded` per shape. `left_out` maps a variant that died to the reason.
    `engines_sha256` are those of the manifests; `plan` holds the `latency` settings, `decision`
    the settings of that name.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {"heats": list[Heat]}

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
    busiest: dict[str, float] = field(default_factory=dict)
