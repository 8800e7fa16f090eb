"""Record of a profile: the operators of one variant at each shape, and what bounds its calls."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypedDict

from tightrope.records.contents import ProfiledShape
from tightrope.records.record import Record


class Around(TypedDict):
    """Seconds around a call; `prepare_s` is None for random inputs, which nothing prepares."""

    prepare_s: float | None
    finish_s: float


class ModelWork(TypedDict):
    """What a call of the model takes at least, whatever the engine.

    `groups` has the operations by group of operators.
    """

    operations: float
    least_bytes: float
    groups: dict[str, float]


# here and not in `contents`, which is in the digest of every measurement
class ProfiledRequest(ProfiledShape, total=False):
    """A shape of a profile, with what goes around its call and what the model takes at least."""

    around: Around
    model: ModelWork


@dataclass(kw_only=True)
class ProfileRecord(Record):
    """Where the time of a call goes, for each of `shapes`.

    A shape holds its sizes, `call_s` (the mean of calls without a profiler), `padding` (the share
    of its tokens or images that only pads the request), `operators` (the longest, see
    `OperatorTime`; seconds per call), `groups` (seconds, operations and bytes of all operators, by
    group, and seconds by type), and `bound`, `shares`, `outside_s` and `profiler_factor` of
    `measure.profile.bounds.verdict`. Where the runtime has no profiler, `operators` is empty and
    `unprofiled` has the reason. `around` has the seconds from raw examples to inputs and from
    logits to labels, `model` what the model takes at least; without an ONNX file in the plan it is
    missing. `peaks` are those of the machine, empty where they or the requests have failed.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {"shapes": list[ProfiledRequest]}

    threads: int
    peaks: dict[str, Any]
    unprofiled: str | None = None
    shapes: list[dict[str, Any]] = field(default_factory=list)
