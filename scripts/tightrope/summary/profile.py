"""Profile entries of summary.json. Times are in seconds per call; None means not known."""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from tightrope.machine.lacks import missing_instructions
from tightrope.records.profile import (
    Around,
    Bound,
    Group,
    ModelWork,
    Operator,
    ProfiledShape,
    ProfileRecord,
)
from tightrope.summary.measured import Measured, measured_entry
from tightrope.variants import GIVEN, parse

# to the float of a quantized variant, of the fastest to the baseline, of any other to the fastest
Relation = Literal["float", "baseline", "best"]
# a file that is quantized already is in int8, or in fp8, which is as fast on GPUs that have it
PEAK_OF = {GIVEN: "int8"}
LONGEST = 5


class OperatorGroup(TypedDict):
    """Operators of one group: their time scaled to the call, its share of it, and what they do.

    `types` are the shares of the call by the type that they computed in.
    """

    group: str
    seconds: float
    share: float
    types: dict[str, float]
    operations: float
    bytes: float
    count: int


class LongOperator(TypedDict):
    """One of the longest operators, in the runtime's words."""

    name: str
    kind: str
    group: str
    type: str
    seconds: float
    share: float


class Roofline(TypedDict):
    """A call in the roofline: what the model takes at least, and what the variant reaches of it.

    `groups` has the operations by group of operators. `peak_per_s` is the machine's in `type`, and
    `roof_per_s` the lower of it and what the copy bandwidth allows; None if it was not measured.
    """

    operations: float
    least_bytes: float
    groups: dict[str, float]
    type: str
    operations_per_s: float
    peak_per_s: float | None
    roof_per_s: float | None


class ProfiledCall(TypedDict):
    """Where the time of a call goes; without a profiler only `call_s` is known.

    `shares` are those of compute, memory and overhead; `outside` is the share that no operator
    takes. `profiler_factor` scales the operators' times where a profiler made them too long.
    `padding` is the share of the tokens, or of the images, that only pads the request.
    `prepare_s` and `finish_s` are the seconds from raw examples to inputs and from logits to
    labels, and `ceiling` is how many times faster a faster engine makes the whole at most.
    """

    batch: int
    sequence: int | None
    height: int | None
    width: int | None
    call_s: float
    bound: Bound | None
    shares: dict[Bound, float] | None
    outside: float | None
    profiler_factor: float | None
    padding: float | None
    prepare_s: float | None
    finish_s: float | None
    ceiling: float | None
    roofline: Roofline | None
    groups: list[OperatorGroup]
    operators: list[LongOperator]


class Profile(Measured):
    """The profile of a variant; `unprofiled` says why its operators are not timed.

    `emulated` is None, or why the CPU only emulates the variant's precision.
    """

    unprofiled: str | None
    emulated: str | None
    shapes: list[ProfiledCall]


class Part(TypedDict):
    """Seconds per call of a group of operators in two variants, and what the first saves."""

    group: str
    seconds: float
    against_s: float
    saved_s: float


class Explanation(TypedDict):
    """Why `variant` is faster or slower than `against` at one shape, in parts and in sentences.

    `saved_s` is negative where it is slower. Parts are sorted by what they save or cost.
    """

    model: str
    host: str
    batch: int
    sequence: int | None
    height: int | None
    width: int | None
    variant: str
    against: str
    relation: Relation
    saved_s: float
    parts: list[Part]
    sentences: list[str]


def roofline_entry(
    work: ModelWork | None, call_s: float, precision: str, peaks: Mapping[str, Any]
) -> Roofline | None:
    """Return the point of a call of `call_s` seconds, None where the model's work is not known.

    The roof is the peak of the variant's type, or the copy bandwidth times the operations per byte
    where that is lower. Both are None for a type whose peak was not measured.
    """
    if work is None:
        return None
    name = PEAK_OF.get(precision, precision.partition("-")[0])
    peak = peaks["operations_per_s"].get(name)
    by_memory = peaks["copy_bytes_per_s"] * work.operations / work.least_bytes
    return {
        "operations": work.operations,
        "least_bytes": work.least_bytes,
        "groups": work.groups,
        "type": name,
        "operations_per_s": work.operations / call_s,
        "peak_per_s": peak,
        "roof_per_s": None if peak is None else min(peak, by_memory),
    }


def ceiling_of(call_s: float, around: Around) -> float | None:
    """Return how many times faster a request gets if the call takes no time (Amdahl's law).

    None where the time to prepare the inputs is not known.
    """
    if around.prepare_s is None:
        return None
    rest = around.prepare_s + around.finish_s
    return (rest + call_s) / rest


def profile_entry(record: ProfileRecord) -> Profile:
    """Return the entry of a profile record."""
    return {
        **measured_entry(record),
        "unprofiled": record.unprofiled,
        "emulated": missing_instructions(parse(record.variant), record.host),
        "shapes": [call_entry(shape, record) for shape in record.shapes],
    }


def call_entry(shape: ProfiledShape, record: ProfileRecord) -> ProfiledCall:
    """Return the entry of a shape, with times scaled to the call by `profiler_factor`."""
    call_s, scale = shape.call_s, shape.profiler_factor or 1.0
    precision = parse(record.variant).precision
    return {
        "batch": shape.batch,
        "sequence": shape.sequence,
        "height": shape.height,
        "width": shape.width,
        "call_s": call_s,
        "bound": shape.bound,
        "shares": shape.shares or None,
        "outside": None if shape.outside_s is None else shape.outside_s / call_s,
        "profiler_factor": shape.profiler_factor,
        "padding": shape.padding,
        "prepare_s": shape.around.prepare_s,
        "finish_s": shape.around.finish_s,
        "ceiling": ceiling_of(call_s, shape.around),
        "roofline": roofline_entry(shape.model, call_s, precision, record.peaks),
        "groups": [group_entry(name, group, scale, call_s) for name, group in shape.groups.items()],
        "operators": [operator_entry(one, scale, call_s) for one in shape.operators[:LONGEST]],
    }


def group_entry(name: str, group: Group, scale: float, call_s: float) -> OperatorGroup:
    """Return the entry of a group of operators."""
    seconds = scale * group.seconds
    return {
        "group": name,
        "seconds": seconds,
        "share": seconds / call_s,
        "types": {kind: scale * value / call_s for kind, value in group.types.items()},
        "operations": group.operations,
        "bytes": group.bytes,
        "count": group.count,
    }


def operator_entry(operator: Operator, scale: float, call_s: float) -> LongOperator:
    """Return the entry of an operator."""
    seconds = scale * operator.seconds
    return {
        "name": operator.name,
        "kind": operator.kind,
        "group": operator.group,
        "type": operator.type,
        "seconds": seconds,
        "share": seconds / call_s,
    }
