"""Causes of a call's time that a setting removes, and what that would save by the profile.

A profile tells where the time is, not what is left of it without the cause. So a saving is
predicted between two bounds, as shares of the call, and each cause says what its bounds assume.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tightrope.engine_table import ENGINES
from tightrope.runtimes.operator_times import ATTENTION, ELEMENTWISE, PRODUCTS
from tightrope.variants import UNQUANTIZED, Variant

# shares of the call that a cause holds and that its removal may save at least, else it is not named
NAMED, LEAST = 0.1, 0.05
# the same engine with bf16 in the place of fp32
IN_BF16 = {"fp32": "bf16", "int8": "int8-bf16"}
SOFTMAX, MOVES = "softmax", "moves"


class Change(NamedTuple):
    """An engine without the cause: its variant, options of its build, and threads."""

    variant: str
    options: dict[str, Any]
    threads: int


class Cause(NamedTuple):
    """A cause in words, the setting that removes it, and the share of the call that this saves."""

    cause: str
    setting: str
    change: Change
    low: float
    high: float


class Profiled(NamedTuple):
    """A profiled call: an entry of `shapes` of a ProfileRecord, and how the engine is made.

    `cores` are those that the machine has, `peaks` its own.
    """

    call: Mapping[str, Any]
    variant: Variant
    options: Mapping[str, Any]
    threads: int
    cores: int
    peaks: Mapping[str, Any]

    def changed(self, **changes: Any) -> Change:
        """Return the engine with other `variant`, `options` or `threads`."""
        own = {"variant": str(self.variant), "options": self.options, "threads": self.threads}
        return Change(**{**own, **changes})

    def share(self, *groups: str) -> float:
        """Return the share of the call that the operators of some groups take."""
        factor = self.call["profiler_factor"] / self.call["call_s"]
        return float(factor * self.total("seconds", groups))

    def total(self, what: str, groups: Iterable[str]) -> float:
        """Return the sum of `seconds`, `operations` or `bytes` over some groups."""
        found = self.call["groups"]
        return float(sum(found[group][what] for group in groups if group in found))


def causes(profiled: Profiled) -> list[Cause]:
    """Return the causes of a call whose operators are timed, none where they are not."""
    if not profiled.call.get("groups"):
        return []
    found = (cause for rule in RULES for cause in rule(profiled))
    return [one for one in found if one.high >= LEAST]


def padding(profiled: Profiled) -> Iterator[Cause]:
    """Yield tokens or images that only pad the request up to its bucket.

    Low: what compute bounds shrinks with the tokens; overhead stays, and memory may be weights.
    High: all shrinks, attention with the square of the tokens, and what memory bounds is gone,
    because it fits in caches.
    """
    call, buckets = profiled.call, profiled.options.get("buckets")
    share = call["padding"] or 0.0
    if not buckets or share < NAMED:
        return
    exact = {axis: [call[axis]] for axis in buckets}
    words = ", ".join(f"{axis}: {sizes}" for axis, sizes in exact.items())
    square = profiled.share(ATTENTION, SOFTMAX) * share * (1 - share)
    cached = call["shares"]["memory"] * (1 - share)
    yield Cause(
        f"{100 * share:.0f} % of the request is padding",
        f"buckets: {{{words}}}",
        profiled.changed(options={**profiled.options, "buckets": exact}),
        share * call["shares"]["compute"],
        min(1.0, share + square + cached),
    )


def idle_cores(profiled: Profiled) -> Iterator[Cause]:
    """Yield cores that are not used.

    Low: only what is bound by compute gets faster, since cores share their memory. High: all does.
    """
    idle = 1 - profiled.threads / profiled.cores
    if idle <= 0:
        return
    yield Cause(
        f"{profiled.threads} of {profiled.cores} cores are used",
        f"threads: {profiled.cores}",
        profiled.changed(threads=profiled.cores),
        idle * profiled.call["shares"]["compute"],
        idle,
    )


def fp32(profiled: Profiled) -> Iterator[Cause]:
    """Yield operators that compute in fp32 where this machine's bf16 is faster.

    Attention of an engine in int8 computes in fp32, whatever the type of its inputs. Low: the
    arithmetic of products at the peaks, where their operations are known; how much of attention is
    softmax is not. High: both take what their arithmetic takes at the peak of bf16, and other
    operators half the time, for half the bytes.
    """
    variant, peaks = profiled.variant, profiled.peaks["operations_per_s"]
    other = IN_BF16.get(variant.precision)
    if other not in ENGINES[variant.engine].precisions[variant.device]:
        return
    if not peaks.get("bf16", 0.0) > peaks["fp32"]:
        return
    heavy = [ATTENTION] if variant.precision == "int8" else [PRODUCTS, ATTENTION]
    light = set(profiled.call["groups"]) - {PRODUCTS, ATTENTION}
    share = profiled.share(*heavy)
    if share < NAMED:
        return
    call_s = profiled.call["call_s"]
    products = profiled.total("operations", set(heavy) - {ATTENTION}) / call_s
    least = profiled.total("operations", heavy) / call_s / peaks["bf16"]
    yield Cause(
        f"{' and '.join(heavy)} in fp32: {100 * share:.0f} % of the time",
        f"engines: {{{variant.engine}: [{other}]}}",
        profiled.changed(variant=str(variant._replace(precision=other))),
        products * (1 / peaks["fp32"] - 1 / peaks["bf16"]),
        max(0.0, share - least) + profiled.share(*light) / 2,
    )


def separate_operators(profiled: Profiled) -> Iterator[Cause]:
    """Yield attention in several operators, where ONNX Runtime can have one in their place.

    Low: nothing, because the products in it stay. High: all that is between the products.
    """
    groups, options = profiled.call["groups"], profiled.options
    separate = SOFTMAX in groups and ATTENTION not in groups
    if profiled.variant.precision not in UNQUANTIZED or not separate:
        return
    if options.get("attention_operator") is not False:
        return
    share = profiled.share(SOFTMAX, MOVES, ELEMENTWISE)
    yield Cause(
        f"attention is several operators: {100 * share:.0f} % of the time is between products",
        "onnxruntime: {attention_operator: true}",
        profiled.changed(options={**options, "attention_operator": True}),
        0.0,
        share,
    )


Rule = Callable[[Profiled], Iterator[Cause]]
RULES: Sequence[Rule] = (padding, idle_cores, fp32, separate_operators)
