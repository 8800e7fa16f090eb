"""Types of the entries on profiles in summary.json.

docs/summary-json.md describes the fields. Times are in seconds per call; None means not known.
"""

from typing import Literal, TypedDict

from tightrope.summary.measured import Measured

Bound = Literal["compute", "memory", "overhead"]
# to the float of a quantized variant, of the fastest to the baseline, of any other to the fastest
Relation = Literal["float", "baseline", "best"]


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
