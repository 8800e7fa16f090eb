"""Whether to quantize: INT8 and FP8 of each engine paired with the same engine in float."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec.structs import asdict

from tightrope.decide.finalists import STANDINGS
from tightrope.decide.race import Race, RaceKey, ratio_between
from tightrope.decide.recommend import shapes_of
from tightrope.decide.result import (
    Accuracy,
    Entry,
    LatencyRow,
    Ratio,
    Reason,
    Result,
    Shape,
    interval_of,
    same,
)
from tightrope.statistics import AccuracyVerdict, Interval, speed_verdict
from tightrope.variants import QUANTIZED, UNQUANTIZED

QuantizeVerdict = Literal["quantize", "undecided", "do not quantize"]
# best first
VERDICTS: tuple[QuantizeVerdict, ...] = ("quantize", "undecided", "do not quantize")
QUANTIZE, UNDECIDED, DO_NOT = VERDICTS


class QuantizedAccuracy(Entry):
    """The change of accuracy from the baseline."""

    delta: float | None
    delta_low: float | None
    delta_high: float | None
    flips: int | None
    samples: int
    verdict: AccuracyVerdict | None
    """As in the [Accuracy](#accuracy) of the result."""


class QuantizedVariant(Entry):
    """Whether a quantized variant is worth it."""

    variant: str
    verdict: QuantizeVerdict
    """Whether it is surely faster and keeps the accuracy."""
    why: list[Reason]
    """All reasons that hold."""
    failed: str | None
    """Why it failed, else None."""
    speedup: Ratio | None
    """Over `unquantized`; None if the two were not timed in the same rounds."""
    accuracy: QuantizedAccuracy | None
    """None if it was not evaluated."""


class Quantization(QuantizedVariant):
    """[Whether to quantize](measurement.md#to-quantize-or-not) an engine at one shape.

    There is an entry if it has a variant in INT8 or FP8 that was tried (`ok` or `failed`), and one
    in fp32, tf32, bf16 or fp16 measured at that shape. `variant` to `accuracy` are those of its
    best quantized variant.
    """

    model: str
    host: str
    device: str
    engine: str
    shape: Shape
    """Which engine, and where."""
    unquantized: str
    """The engine's best variant in float."""
    others: list[QuantizedVariant]
    """The engine's other quantized variants, the best first."""


def quantizations(results: list[Result], races: Mapping[RaceKey, Race]) -> list[Quantization]:
    """Return an entry per model, host, device, engine and shape with quantized and float variants.

    They are as of `judged`, in the order of `ranked`.
    """
    found: list[Quantization] = []
    places: dict[tuple[str, str | None, str, str], list[Result]] = {}
    for one in results:
        places.setdefault((one.model, one.host, one.device, one.engine), []).append(one)
    for (model, host, device, _), own in places.items():
        quantized = [one for one in own if one.precision in QUANTIZED and host is not None]
        for shape in shapes_of(own) if quantized else ():
            race = races.get(RaceKey(model, host, device, shape))
            if (plain := best_unquantized(own, shape, race)) is None:
                continue
            first, *others = ranked(quantized, plain, shape, race)
            entry = Quantization(
                **asdict(first),
                **same(plain, "model", "host", "device", "engine"),
                shape=shape,
                unquantized=plain.variant,
                others=others,
            )
            found.append(entry)
    return found


def best_unquantized(results: list[Result], shape: Shape, race: Race | None) -> Result | None:
    """Return the best measured float variant of an engine, or None.

    Variants that raced come first, then better accuracy verdicts (see STANDINGS), then lower
    latency.
    """
    raced = race.raced if race else ()
    known = [one for one in results if one.precision in UNQUANTIZED and one.status == "ok"]
    return min(
        (one for one in known if seconds_at(one, shape) < math.inf),
        key=lambda one: (one.variant not in raced, standing_of(one), seconds_at(one, shape)),
        default=None,
    )


def seconds_at(result: Result, shape: Shape) -> float:
    """Return the time per call by which variants are compared, infinite if there is none."""
    row = result.at(shape)
    return row.paired_s if row and row.paired_s is not None else math.inf


def ranked(
    quantized: list[Result], plain: Result, shape: Shape, race: Race | None
) -> list[QuantizedVariant]:
    """Return the quantized variants as `judged`, best first.

    The order is by verdict, so that an engine is not worth quantizing only if none of its variants
    is; then failures last; then by accuracy verdict; then by latency. Measured variants that did
    not race because another quantized variant was better come last, since nothing more is known of
    them.
    """
    found = {one.variant: judged(one, plain, one.at(shape), race) for one in quantized}
    raced = {name for name in found if race and name in race.raced}

    def rank(one: Result) -> tuple[Any, ...]:
        name = one.variant
        behind = bool(raced - {name}) and name not in raced and seconds_at(one, shape) < math.inf
        verdict = VERDICTS.index(found[name].verdict)
        return behind, verdict, one.status != "ok", standing_of(one), seconds_at(one, shape)

    return [found[one.variant] for one in sorted(quantized, key=rank)]


def judged(
    result: Result, plain: Result, row: LatencyRow | None, race: Race | None
) -> QuantizedVariant:
    """Return whether a quantized variant is worth it against the engine's float variant `plain`.

    Their speed-up is None if the two were not measured in the same rounds.
    """
    name, ok = result.variant, result.status == "ok"
    paired: Ratio | None = ratio_between(race, name, plain.variant) if race else None
    if paired is None and row and plain.variant == result.baseline:
        paired = row.speedup
    speedup = interval_of(paired)
    why = [] if ok else [Reason.of("failed", reason=result.reason)]
    if speedup is not None:
        code: str = speed_verdict(speedup)
        if code == "tie":
            code = "no_faster" if speedup.high == 1 else "not_faster"
        why.append(Reason.of(f"{code}_than", other=plain.variant))
    elif ok:
        why.append(why_not_raced(row, name, plain.variant, race))
    if ok or result.accuracy is not None:
        why.append(accuracy_reason(result.accuracy))
    if standing := standing_of(plain):
        why.append(Reason.of("float_too", other=plain.variant, verdict=STANDINGS[standing]))
    return QuantizedVariant(
        variant=name,
        verdict=advice(result, plain, speedup),
        why=why,
        failed=None if ok else result.reason,
        speedup=Ratio.of(speedup) if speedup else None,
        accuracy=msgspec.convert(result.accuracy, QuantizedAccuracy | None, from_attributes=True),
    )


def advice(result: Result, plain: Result, speedup: Interval | None) -> QuantizeVerdict:
    """Return one of VERDICTS.

    A slower variant is not rejected if the float variant has a worse accuracy verdict, since that
    float variant may not be deployable.
    """
    if result.status != "ok" or standing_of(result) == STANDINGS.index("dropped"):
        return DO_NOT
    if speedup is None:
        return UNDECIDED
    if speedup.high <= 1 and standing_of(plain) <= standing_of(result):
        return DO_NOT
    return QUANTIZE if speedup.low > 1 and standing_of(result) == 0 else UNDECIDED


def standing_of(result: Result) -> int:
    """Return the rank of the accuracy verdict: 0 if kept or not evaluated, higher if worse."""
    verdict = result.accuracy.verdict if result.accuracy else None
    return STANDINGS.index(verdict or "kept")


def why_not_raced(row: LatencyRow | None, name: str, plain: str, race: Race | None) -> Reason:
    """Return why there is no speed-up over the float variant."""
    if row is None:
        return Reason.of("unmeasured")
    if race and {name, plain} <= set(race.raced):
        return Reason.of("apart" if race.heats > 1 else "few_rounds", other=plain)
    return Reason.of("loaded") if row.disturbed else Reason.of("another_faster", other=plain)


def accuracy_reason(accuracy: Accuracy | None) -> Reason:
    """Return the accuracy verdict as a reason."""
    if accuracy is None:
        return Reason.of("not_evaluated")
    if accuracy.verdict != "undecided":
        return Reason.of("verdict", verdict=accuracy.verdict)
    return Reason.of("accuracy_unknown" if accuracy.delta is None else "few_samples")
