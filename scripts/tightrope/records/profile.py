"""Records of the operators of a call, and of causes of its time that were removed."""

from typing import Any, ClassVar, TypedDict

from tightrope.records.record import Record, Round, Sized

# begins the names of the inputs of a build among those of the job
PREFIX = "build_"


class Operator(TypedDict):
    """One operator of a call, see `runtimes.operator_times.OperatorTime`."""

    name: str
    kind: str
    group: str
    type: str
    seconds: float
    operations: float
    bytes: float


class Group(TypedDict):
    """The operators of one group in a call, added up; `types` has their seconds by type."""

    seconds: float
    operations: float
    bytes: float
    count: int
    types: dict[str, float]


class ProfiledShape(Sized, total=False):
    """Where the time of a call of one shape goes, see `ProfileRecord`."""

    call_s: float
    padding: float
    operators: list[Operator]
    groups: dict[str, Group]
    bound: str
    shares: dict[str, float]
    outside_s: float
    profiler_factor: float


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


class ProfileRecord(Record, kw_only=True):
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
    shapes: list[dict[str, Any]] = []


class RemovedCause(Sized, total=False):
    """An entry of `causes` of a CausesRecord, see there."""

    cause: str
    setting: str
    low: float
    high: float
    profiled_s: float
    reason: str | None
    rounds: list[Round]


class CausesRecord(Record, kw_only=True):
    """Calls of a variant beside those of an engine without the cause, for each cause and shape.

    Each of `causes` holds the sizes of its shape, the `cause` in words, the `setting` that removes
    it, the predicted saving from `low` to `high` as shares of a call, see `measure.causes.predict`,
    and `profiled_s`, its seconds when it was profiled. `rounds` are those of two engines, the
    variant and the one without the cause; where that could not be built or run there are none, and
    `reason` says why.

    `lost_s` are the seconds lost to other load, `busiest` the cores that the busiest programs used,
    by name.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {"causes": list[RemovedCause]}

    threads: int
    processors: list[int]
    lost_s: float = 0.0
    busiest: dict[str, float] = {}
    causes: list[dict[str, Any]] = []
