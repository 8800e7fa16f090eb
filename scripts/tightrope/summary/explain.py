"""Which operators account for the difference between two profiled variants."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tightrope.summary.explain_words import Called, sentences
from tightrope.summary.profile_types import (
    Explanation,
    Part,
    Profile,
    ProfiledCall,
    Relation,
)
from tightrope.variants import QUANTIZED, UNQUANTIZED, parse

# what no operator takes: dispatch, copies, Python
OUTSIDE = "outside of operators"

Baselines = Mapping[str, Mapping[str, str]]


class Sizes(NamedTuple):
    """Sizes of a shape."""

    batch: int
    sequence: int | None
    height: int | None
    width: int | None


def explanations(profiles: Iterable[Profile], baselines: Baselines) -> list[Explanation]:
    """Return an explanation of each pair that the report compares, at each shape.

    The pairs are a quantized variant and the float of its engine, the fastest variant and the
    baseline (`baselines` by model and place), and each other variant and the fastest. Variants
    whose operators are not timed are in none.
    """
    found = []
    for (model, host, shape), called in by_shape(profiles).items():
        for one, other, relation in pairs(called, baselines.get(model, {})):
            parts = parts_of(one.call, other.call)
            entry: Explanation = {
                "model": model,
                "host": host,
                "batch": shape.batch,
                "sequence": shape.sequence,
                "height": shape.height,
                "width": shape.width,
                "variant": one.variant,
                "against": other.variant,
                "relation": relation,
                "saved_s": other.call["call_s"] - one.call["call_s"],
                "parts": parts,
                "sentences": sentences(one, other, parts),
            }
            found.append(entry)
    return found


def by_shape(profiles: Iterable[Profile]) -> dict[tuple[str, str, Sizes], list[Called]]:
    """Return the calls whose operators are timed, by model, host and shape; the fastest first."""
    found: dict[tuple[str, str, Sizes], list[Called]] = {}
    for profile in profiles:
        for call in profile["shapes"]:
            if profile["status"] == "ok" and call["outside"] is not None:
                shape = Sizes(call["batch"], call["sequence"], call["height"], call["width"])
                one = Called(profile["variant"], call, profile["emulated"])
                found.setdefault((profile["model"], profile["host"], shape), []).append(one)
    return {key: sorted(ones, key=call_s) for key, ones in found.items()}


def call_s(one: Called) -> float:
    """Return the seconds of a call."""
    return one.call["call_s"]


def pairs(
    called: Sequence[Called], baselines: Mapping[str, str]
) -> Iterator[tuple[Called, Called, Relation]]:
    """Yield each pair once, with its first relation; `called` has the fastest first."""
    seen = set()
    for one, other, relation in possible_pairs(called, baselines):
        if one is not other and frozenset((one.variant, other.variant)) not in seen:
            seen.add(frozenset((one.variant, other.variant)))
            yield one, other, relation


def possible_pairs(
    called: Sequence[Called], baselines: Mapping[str, str]
) -> Iterator[tuple[Called, Called, Relation]]:
    """Yield the pairs in the order of their relations, some of them twice."""
    best = called[0]
    for one in called:
        if (plain := float_of(one, called)) is not None:
            yield one, plain, "float"
    for one in called:
        if one.variant == baselines.get(parse(one.variant).place):
            yield best, one, "baseline"
    for one in called[1:]:
        yield one, best, "best"


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
    fp32 = [other for other in floats if parse(other.variant).precision == "fp32"]
    return next(iter([*fp32, *floats]), None)


def parts_of(one: ProfiledCall, other: ProfiledCall) -> list[Part]:
    """Return what each group of operators takes in both; what differs most is first."""
    ours, theirs = seconds_by_group(one), seconds_by_group(other)
    parts: list[Part] = [
        {
            "group": group,
            "seconds": ours.get(group, 0.0),
            "against_s": theirs.get(group, 0.0),
            "saved_s": theirs.get(group, 0.0) - ours.get(group, 0.0),
        }
        for group in {**ours, **theirs}
    ]
    return sorted(parts, key=lambda part: -abs(part["saved_s"]))


def seconds_by_group(call: ProfiledCall) -> dict[str, float]:
    """Return the seconds of each group and of what no operator takes."""
    groups = {group["group"]: group["seconds"] for group in call["groups"]}
    return groups | {OUTSIDE: (call["outside"] or 0.0) * call["call_s"]}
