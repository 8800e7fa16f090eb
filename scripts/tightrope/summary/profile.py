"""Entries of profiles, and what explains the difference of two of them.

Times are in seconds per call; None means not known.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec.structs import asdict

from tightrope.decide.phrases import milliseconds
from tightrope.decide.result import Entry, Measured, Shape, same
from tightrope.machine.lacks import missing_instructions
from tightrope.records.profile import Bound, ProfileRecord, Work
from tightrope.runtimes.operator_times import ATTENTION, PRODUCTS, WIDTHS
from tightrope.summary.results import measured_entry
from tightrope.variants import GIVEN, QUANTIZED, UNQUANTIZED, parse

# to the float of a quantized variant, of the fastest to the baseline, of any other to the fastest
Relation = Literal["float", "baseline", "best"]
# a file that is quantized already is in int8, or in fp8, which is as fast on GPUs that have it
PEAK_OF = {GIVEN: "int8"}
# bytes of a weight in precisions that are no name of a type: those of int8 and of fp8 are one
OTHER_WIDTHS = {"tf32": 4, GIVEN: 1}
LONGEST = 5


class OperatorGroup(Entry):
    """The operators of one group in a call."""

    group: str
    """Its name."""
    seconds: float
    share: float
    """Their time scaled to the call, and its share of it."""
    types: dict[str, float]
    """Shares of the call by the type that they computed in."""
    operations: float
    bytes: float
    count: int
    """Multiplications and additions, the bytes that they move at least, and how many they are."""


class LongOperator(Entry):
    """One of the five longest operators, in the runtime's words."""

    name: str
    kind: str
    group: str
    type: str
    """Its name, kind and group, and the type that it computed in."""
    seconds: float
    share: float
    """Its time scaled to the call, and its share of it."""


class Roofline(Entry):
    """A call in the roofline: what the model takes on any engine, and what the variant reaches."""

    operations: float
    least_bytes: float
    """Of a call."""
    groups: dict[str, float]
    """Operations by group of operators."""
    type: str
    """Of the variant."""
    operations_per_s: float
    """What it reaches."""
    peak_per_s: float | None
    """Of the machine in that type; None where it was not measured."""
    roof_per_s: float | None
    """The lower of the peak and what the copy bandwidth allows at these operations per byte; None
    without a peak."""


class ProfiledCall(Entry):
    """Where the time of a call goes."""

    shape: Shape
    """Of the request."""
    call_s: float
    """The mean of calls without a profiler. What a profiler tells is None or empty without one."""
    bound: Bound | None
    shares: dict[Bound, float] | None
    """What bounds the call, and the shares of the three."""
    outside: float | None
    """The share that no operator takes."""
    profiler_factor: float | None
    """By which the operators' times were scaled down to the call."""
    padding: float | None
    """The share of the tokens or images that pads the request up to its bucket."""
    prepare_s: float | None
    finish_s: float | None
    """From raw examples to the inputs of the call, and from its logits to labels; `prepare_s` is
    None for random inputs."""
    ceiling: float | None
    """How many times faster the whole request gets at most by a faster engine (Amdahl's law):
    (`prepare_s` + `call_s` + `finish_s`) ÷ (`prepare_s` + `finish_s`). None with `prepare_s`."""
    roofline: Roofline | None
    """None without an ONNX file."""
    groups: list[OperatorGroup]
    operators: list[LongOperator]
    """All groups, and the five longest operators; empty without a profiler."""


class Profile(Measured):
    """The operator times of a variant."""

    unprofiled: str | None
    """Why the operators are not timed, else None."""
    emulated: str | None
    """Why the CPU only emulates the precision, else None."""
    shapes: list[ProfiledCall]
    """One call per shape."""


class Part(Entry):
    """A group of operators, or `outside of operators`, in two variants."""

    group: str
    """Its name."""
    seconds: float
    against_s: float
    saved_s: float
    """Per call of the first and of the second, and what the first saves."""


class Explanation(Entry):
    """Why a profiled variant is faster or slower than another at one shape."""

    model: str
    host: str
    shape: Shape
    variant: str
    against: str
    """Both profiled at that shape."""
    relation: Relation
    """`float`: of a quantized variant to the float of its engine; `baseline`: of the fastest
    profiled variant to the baseline; `best`: of another to the fastest."""
    saved_s: float
    """Per call; negative where `variant` is slower."""
    parts: list[Part]
    """They add up to `saved_s`; what differs most is first."""
    sentences: list[str]
    """The same in words, the largest causes first."""


def roofline_entry(work: Work | None, call_s: float, record: ProfileRecord) -> Roofline | None:
    """Return the point of a call of `call_s` seconds, None where the model's work is not known.

    The roof is the peak of the variant's type, or the copy bandwidth times the operations per byte
    where that is lower. Both are None for a type whose peak was not measured.
    """
    peaks, precision = record.peaks, parse(record.variant).precision
    if work is None or peaks is None:
        return None
    name = precision.partition("-")[0]
    kind, moved = PEAK_OF.get(precision, name), least_bytes(work, name)
    peak = peaks.operations_per_s.get(kind)
    by_memory = peaks.copy_bytes_per_s * work.operations / moved
    return Roofline(
        operations=work.operations,
        least_bytes=moved,
        groups=work.groups,
        type=kind,
        operations_per_s=work.operations / call_s,
        peak_per_s=peak,
        roof_per_s=None if peak is None else min(peak, by_memory),
    )


def least_bytes(work: Work, name: str) -> float:
    """Return the bytes that a call moves at least, with each weight once in the type `name`."""
    return work.weights * (OTHER_WIDTHS.get(name) or WIDTHS[name]) + work.other_bytes


def profile_entry(record: ProfileRecord) -> Profile:
    """Return the entry of a profile record, with times scaled to the call by `profiler_factor`."""
    calls = []
    for shape in record.shapes:
        call_s, scale = shape.call_s, shape.profiler_factor or 1.0
        rest = None if shape.prepare_s is None else shape.prepare_s + shape.finish_s
        groups, operators = [], []
        for name, group in shape.groups.items():
            seconds = scale * group.seconds
            types = {kind: scale * value / call_s for kind, value in group.types.items()}
            told = {**asdict(group), "seconds": seconds, "types": types}
            groups.append(OperatorGroup(group=name, share=seconds / call_s, **told))
        for one in shape.operators[:LONGEST]:
            seconds, names = scale * one.seconds, (one.name, one.kind, one.group, one.type)
            operators.append(LongOperator(*names, seconds, seconds / call_s))
        call = ProfiledCall(
            **same(shape, "call_s", "bound", "profiler_factor", "padding", "prepare_s", "finish_s"),
            shape=Shape(**shape.sizes),
            shares=shape.shares or None,
            outside=None if shape.outside_s is None else shape.outside_s / call_s,
            ceiling=None if rest is None else (rest + call_s) / rest,
            roofline=roofline_entry(shape.work, call_s, record),
            groups=groups,
            operators=operators,
        )
        calls.append(call)
    return Profile(
        **measured_entry(record),
        unprofiled=record.unprofiled,
        emulated=missing_instructions(parse(record.variant), record.host),
        shapes=calls,
    )


# a smaller difference of two calls is not explained
ALIKE = 0.03
# a group is named where it makes up this share of all differences, or of the call
NAMED = 0.1
MOST_NAMED = 3
MINUS = "\N{MINUS SIGN}"
CONVERSIONS = "conversions"
STAY = {PRODUCTS: "Some products stay", ATTENTION: "Attention stays"}
# what no operator takes: dispatch, copies, Python
OUTSIDE = "outside of operators"
Baselines = Mapping[str, Mapping[str, str]]


class Called(NamedTuple):
    """The call of a variant at one shape, and why its precision would only be emulated."""

    variant: str
    call: ProfiledCall
    emulated: str | None


def sentences(one: Called, other: Called, parts: Sequence[Part]) -> list[str]:
    """Return why the call of `one` differs from that of `other`, the largest causes first.

    The groups that differ most are named: `products -0.9 ms, conversions +0.3 ms`. Calls that
    differ by less than 3 % are called alike. `parts` are those of `parts_of`.
    """
    ours, theirs = one.call.call_s, other.call.call_s
    figures = f"{milliseconds(ours)} against {milliseconds(theirs)}"
    if abs(ours - theirs) < ALIKE * max(ours, theirs):
        return [f"As fast as {other.variant} within 3 %: {figures}."]
    word = "faster" if ours < theirs else "slower"
    first = f"{milliseconds(abs(ours - theirs))} {word} than {other.variant} ({figures})"
    total = sum(abs(part.saved_s) for part in parts)
    named = [part for part in parts if abs(part.saved_s) >= NAMED * total][:MOST_NAMED]
    differ = [
        f"{part.group} {MINUS if part.saved_s > 0 else '+'}{milliseconds(abs(part.saved_s))}"
        for part in named
    ]
    own = parts if parse(one.variant)[:2] == parse(other.variant)[:2] else []
    return [f"{first}: {', '.join(differ)}.", *causes(one, own)]


def causes(one: Called, parts: Sequence[Part]) -> Iterator[str]:
    """Yield what keeps `one` from being faster.

    `parts` are those against another variant of its engine, else there are none: what quantization
    costs shows against the float of the same engine only.
    """
    call, precision = one.call, parse(one.variant).precision
    if one.emulated:
        yield f"{precision} is emulated: {one.emulated}."
    if precision in QUANTIZED:
        yield from of_quantization(call, parts)
    if (call.padding or 0.0) >= NAMED:
        yield f"Padding: {percent(call.padding or 0.0)} of the tokens."
    if call.shares and call.bound == "overhead":
        share = percent(call.shares["overhead"])
        yield f"{share} of the call is overhead, which no precision makes shorter."


def of_quantization(call: ProfiledCall, parts: Sequence[Part]) -> Iterator[str]:
    """Yield what quantization costs, and what it left in float."""
    saved = {part.group: part.saved_s for part in parts}
    gain, cost = saved.get(PRODUCTS, 0.0), -saved.get(CONVERSIONS, 0.0)
    if gain > 0 and cost >= NAMED * gain:
        word = " of" if cost < gain else ", more than"
        times = f"{milliseconds(cost)}{word} the {milliseconds(gain)}"
        yield f"Conversions between types take {times} that products save."
    for group in call.groups:
        for name, share in group.types.items() if group.group in STAY else ():
            if name not in ("int8", "fp8", "unknown") and share >= NAMED:
                yield f"{STAY[group.group]} in {name}: {percent(share)} of the time."


def percent(share: float) -> str:
    """Format a share in percent."""
    return f"{100 * share:.0f} %"


def explanations(profiles: Iterable[Profile], baselines: Baselines) -> list[Explanation]:
    """Return an explanation of each pair that the report compares, at each shape.

    The pairs are a quantized variant and the float of its engine, the fastest variant and the
    baseline (`baselines` by model and place), and each other variant and the fastest. Variants
    whose operators are not timed are in none.
    """
    timed: dict[tuple[str, str, Shape], list[Called]] = {}
    for profile in profiles:
        for call in profile.shapes:
            if profile.status == "ok" and call.outside is not None:
                one = Called(profile.variant, call, profile.emulated)
                timed.setdefault((profile.model, profile.host, call.shape), []).append(one)
    found = []
    for (model, host, shape), called in timed.items():
        called.sort(key=lambda one: one.call.call_s)
        for one, other, relation in pairs(called, baselines.get(model, {})):
            parts = parts_of(one.call, other.call)
            entry = Explanation(
                model=model,
                host=host,
                shape=shape,
                variant=one.variant,
                against=other.variant,
                relation=relation,
                saved_s=other.call.call_s - one.call.call_s,
                parts=parts,
                sentences=sentences(one, other, parts),
            )
            found.append(entry)
    return found


def pairs(
    called: Sequence[Called], baselines: Mapping[str, str]
) -> Iterator[tuple[Called, Called, Relation]]:
    """Yield each pair once, with its first relation; `called` has the fastest first."""
    best, *others = called
    possible: list[tuple[Called, Called | None, Relation]] = [
        *((one, float_of(one, called), "float") for one in called),
        *(
            (best, one, "baseline")
            for one in called
            if one.variant == baselines.get(parse(one.variant).place)
        ),
        *((one, best, "best") for one in others),
    ]
    seen = set()
    for one, other, relation in possible:
        if other and one is not other and {one.variant, other.variant} not in seen:
            seen.add(frozenset((one.variant, other.variant)))
            yield one, other, relation


def float_of(one: Called, called: Sequence[Called]) -> Called | None:
    """Return fp32 of the same engine, else its fastest float; None for what is not quantized."""
    variant = parse(one.variant)
    if variant.precision not in QUANTIZED:
        return None
    floats = [
        other
        for other in called
        if parse(other.variant)[:2] == variant[:2] and parse(other.variant).precision in UNQUANTIZED
    ]
    return min(floats, key=lambda one: parse(one.variant).precision != "fp32", default=None)


def parts_of(one: ProfiledCall, other: ProfiledCall) -> list[Part]:
    """Return what each group of operators takes in both; what differs most is first."""
    ours, theirs = (
        {group.group: group.seconds for group in call.groups}
        | {OUTSIDE: (call.outside or 0.0) * call.call_s}
        for call in (one, other)
    )
    parts = [
        Part(group, own, against, against - own)
        for group in {**ours, **theirs}
        for own, against in [(ours.get(group, 0.0), theirs.get(group, 0.0))]
    ]
    return sorted(parts, key=lambda part: -abs(part.saved_s))
