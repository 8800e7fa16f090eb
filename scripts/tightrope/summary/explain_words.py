"""Why one profiled variant is faster or slower than another, in sentences."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tightrope.runtimes.operator_times import ATTENTION, PRODUCTS
from tightrope.summary.profile_types import Part, ProfiledCall
from tightrope.variants import QUANTIZED, parse

# a smaller difference of two calls is not explained
ALIKE = 0.03
# a group is named where it makes up this share of all differences, or of the call
NAMED = 0.1
MOST_NAMED = 3
MINUS = "\N{MINUS SIGN}"
CONVERSIONS = "conversions"


class Called(NamedTuple):
    """The call of a variant at one shape, and why its precision would only be emulated."""

    variant: str
    call: ProfiledCall
    emulated: str | None


def sentences(one: Called, other: Called, parts: Sequence[Part]) -> list[str]:
    """Return why the call of `one` differs from that of `other`, the largest causes first.

    `parts` are those of `explain.parts_of`. Calls that differ by less than 3 % are called alike.
    """
    ours, theirs = one.call["call_s"], other.call["call_s"]
    figures = f"{milliseconds(ours)} against {milliseconds(theirs)}"
    if abs(ours - theirs) < ALIKE * max(ours, theirs):
        return [f"As fast as {other.variant} within 3 %: {figures}."]
    word = "faster" if ours < theirs else "slower"
    first = f"{milliseconds(abs(ours - theirs))} {word} than {other.variant} ({figures})"
    own = parts if parse(one.variant)[:2] == parse(other.variant)[:2] else []
    return [f"{first}: {differences(parts)}.", *causes(one, own)]


def differences(parts: Sequence[Part]) -> str:
    """Return the groups that differ most: `products -0.9 ms, conversions +0.3 ms`."""
    total = sum(abs(part["saved_s"]) for part in parts)
    named = [part for part in parts if abs(part["saved_s"]) >= NAMED * total][:MOST_NAMED]
    return ", ".join(f"{part['group']} {signed(-part['saved_s'])}" for part in named)


def causes(one: Called, parts: Sequence[Part]) -> Iterator[str]:
    """Yield what keeps `one` from being faster.

    `parts` are those against another variant of its engine, else there are none: what quantization
    costs shows against the float of the same engine only.
    """
    call = one.call
    if one.emulated:
        precision = parse(one.variant).precision
        yield f"{precision} is emulated: {one.emulated}."
    if parse(one.variant).precision in QUANTIZED:
        yield from of_quantization(call, parts)
    if (call["padding"] or 0.0) >= NAMED:
        yield f"Padding: {percent(call['padding'] or 0.0)} of the tokens."
    if call["shares"] and call["bound"] == "overhead":
        share = percent(call["shares"]["overhead"])
        yield f"{share} of the call is overhead, which no precision makes shorter."


def of_quantization(call: ProfiledCall, parts: Sequence[Part]) -> Iterator[str]:
    """Yield what quantization costs, and what it left in float."""
    saved = {part["group"]: part["saved_s"] for part in parts}
    gain, cost = saved.get(PRODUCTS, 0.0), -saved.get(CONVERSIONS, 0.0)
    if gain > 0 and cost >= NAMED * gain:
        word = " of" if cost < gain else ", more than"
        times = f"{milliseconds(cost)}{word} the {milliseconds(gain)}"
        yield f"Conversions between types take {times} that products save."
    for group in call["groups"]:
        if group["group"] not in (PRODUCTS, ATTENTION):
            continue
        for name, share in group["types"].items():
            if name not in ("int8", "fp8") and share >= NAMED:
                verb = "stay" if group["group"] == PRODUCTS else "stays"
                which = "Some products" if group["group"] == PRODUCTS else "Attention"
                yield f"{which} {verb} in {name}: {percent(share)} of the time."


def milliseconds(seconds: float) -> str:
    """Format seconds in milliseconds with three significant digits."""
    value = 1e3 * seconds
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def signed(seconds: float) -> str:
    """Format a difference of seconds in milliseconds with its sign."""
    return f"{'+' if seconds >= 0 else MINUS}{milliseconds(abs(seconds))}"


def percent(share: float) -> str:
    """Format a share in percent."""
    return f"{100 * share:.0f} %"
