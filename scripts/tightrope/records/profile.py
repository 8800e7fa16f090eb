"""Records of the operators of a call, and of causes of its time that were removed."""

from typing import Any, Literal

from msgspec import Struct

from tightrope.records.record import Record, Round, Sized, TimedRecord

# begins the names of the inputs of a build among those of the job
PREFIX = "build_"
Bound = Literal["compute", "memory", "overhead"]


class Operator(Struct, kw_only=True, forbid_unknown_fields=True):
    """One operator of a call, see `runtimes.operator_times.OperatorTime`."""

    name: str
    kind: str
    group: str
    type: str
    seconds: float
    operations: float
    bytes: float


class Group(Struct, kw_only=True, forbid_unknown_fields=True):
    """The operators of one group in a call, added up; `types` has their seconds by type."""

    seconds: float = 0.0
    operations: float = 0.0
    bytes: float = 0.0
    count: int = 0
    types: dict[str, float] = {}


class Around(Struct, kw_only=True, forbid_unknown_fields=True):
    """Seconds from raw examples to inputs, and from logits to labels.

    `prepare_s` is None for random inputs, which nothing prepares.
    """

    prepare_s: float | None = None
    finish_s: float


class ModelWork(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a call of the model takes at least, whatever the engine.

    `groups` has the operations by group of operators.
    """

    operations: float
    least_bytes: float
    groups: dict[str, float]


class ProfiledShape(Sized, kw_only=True):
    """Where the time of a call of one shape goes, with what goes around it.

    `call_s` is the mean of calls without a profiler, `padding` the share of its tokens or images
    that only pads the request. `operators` are the longest, with seconds per call; `groups` cover
    all. Both are empty where the runtime has no profiler, and so is the verdict on them: what
    `bound` the call, the `shares` of compute, memory and overhead, `outside_s`, which no operator
    takes, and the `profiler_factor` that scales operators down to the call. `model` is None without
    an ONNX file in the plan.
    """

    call_s: float = 0.0
    padding: float | None = None
    operators: list[Operator] = []
    groups: dict[str, Group] = {}
    bound: Bound | None = None
    shares: dict[Bound, float] = {}
    outside_s: float | None = None
    profiler_factor: float | None = None
    around: Around
    model: ModelWork | None = None


class ProfileRecord(Record, kw_only=True):
    """Where the time of a call goes, for each of `shapes`.

    Where the runtime has no profiler, `unprofiled` has the reason. `peaks` are those of the
    machine, empty where they or the requests have failed.
    """

    threads: int
    peaks: dict[str, Any]
    unprofiled: str | None = None
    shapes: list[ProfiledShape] = []


class RemovedCause(Sized, kw_only=True):
    """A call beside that of an engine without a cause of its time, at one shape.

    `setting` removes the `cause`, which is in words. The saving is predicted from `low` to `high`
    as shares of the call, see `measure.causes`; the call took `profiled_s` when it was profiled.
    `rounds` are those of two engines, the variant and the one without the cause; where that could
    not be built or run there are none, and `reason` says why.
    """

    cause: str
    setting: str
    low: float
    high: float
    profiled_s: float
    reason: str | None = None
    rounds: list[Round] = []


class CausesRecord(TimedRecord, kw_only=True):
    """Calls of a variant beside those of an engine without the cause, for each cause and shape."""

    processors: list[int]
    causes: list[RemovedCause] = []
