"""Record of builds: the same engine built several times, and its calls in shared rounds."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypedDict

from tightrope.records.contents import Sized
from tightrope.records.record import Record
from tightrope.records.rounds import Round


class Build(TypedDict, total=False):
    """An entry of `builds` of a BuildsRecord, see there."""

    build_s: float
    size_bytes: int


@dataclass(kw_only=True)
class BuildsRecord(Record):
    """Calls of several builds of an engine from the same files, at one shape.

    Each of `builds` holds `build_s`, the seconds of the build, and `size_bytes` of its files;
    `identical` is whether all files of all builds are the same. `rounds` are those of all builds,
    in their order.

    `shape` holds the sizes of the inputs, `options` those of the build. `lost_s` are the seconds
    lost to other load, `busiest` the cores that the busiest programs used, by name. A failed record
    has no rounds.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {
        "builds": list[Build],
        "rounds": list[Round],
        "shape": Sized,
    }

    threads: int
    processors: list[int]
    shape: dict[str, int]
    options: dict[str, Any]
    identical: bool | None = None
    lost_s: float = 0.0
    busiest: dict[str, float] = field(default_factory=dict)
    builds: list[dict[str, Any]] = field(default_factory=list)
    rounds: list[dict[str, Any]] = field(default_factory=list)
