"""Records of the operators of a call, and of causes of its time that were removed.

What profiles share is in files of its own: the peaks of a machine, and the requests of a model.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tightrope.records.record import Record, Round, Sized, TimedRecord

# begins the names of the inputs of a build among those of the job
PREFIX = "build_"
Bound = Literal["compute", "memory", "overhead"]
Rate = Annotated[float, Meta(gt=0)]


class Peaks(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a machine reaches at best, with so many `threads`.

    `operations_per_s` of a product of square matrices by type, multiplications and additions;
    `copy_bytes_per_s`, bytes read and written; `smallest_operator_s`, one that adds one number.
    """

    device: str
    threads: int
    operations_per_s: dict[str, Rate]
    copy_bytes_per_s: Rate
    smallest_operator_s: float


class OperatorTime(Struct, frozen=True, forbid_unknown_fields=True):
    """One operator of a call: the runtime's words for it, and what it took and did per call.

    `type` is that of its first operand that is not an integer index.
    """

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


class Work(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a call of the model takes at least, whatever the engine, in any precision.

    `groups` has the operations by group of operators, `operations` is their sum. `weights` is the
    number of floating-point weights that the call reads: each once, of a table that is only looked
    up the rows that this call looks up. `other_bytes` are those of the inputs, of the logits, and
    of the other weights.
    """

    operations: float
    groups: dict[str, float]
    weights: float
    other_bytes: float


class Request(Sized, kw_only=True):
    """A request of one shape: the seconds around its call, and what the model takes for it.

    `prepare_s` are those from raw examples to inputs, None for random inputs, which nothing
    prepares, `finish_s` those from logits to labels. `work` is None without an ONNX file in the
    plan.
    """

    prepare_s: float | None = None
    finish_s: float
    work: Work | None = None


class ProfiledShape(Request, kw_only=True):
    """Where the time of a call of a request goes.

    `call_s` is the mean of calls without a profiler, `padding` the share of its tokens or images
    that only pads the request. `operators` are the longest, with seconds per call; `groups` cover
    all. Both are empty where the runtime has no profiler, and so is the verdict on them: what
    `bound` the call, the `shares` of compute, memory and overhead, `outside_s`, which no operator
    takes, and the `profiler_factor` that scales operators down to the call.
    """

    call_s: float
    padding: float
    operators: list[OperatorTime] = []
    groups: dict[str, Group] = {}
    bound: Bound | None = None
    shares: dict[Bound, float] = {}
    outside_s: float | None = None
    profiler_factor: float | None = None


class ProfileRecord(Record, kw_only=True):
    """Where the time of a call goes, for each of `shapes`.

    Where the runtime has no profiler, `unprofiled` has the reason. `peaks` are those of the
    machine, None where they have failed.
    """

    threads: int
    peaks: Peaks | None = None
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
