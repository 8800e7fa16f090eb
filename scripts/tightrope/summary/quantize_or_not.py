"""Whether to quantize: INT8 and FP8 of each engine paired with the same engine in float."""

import math
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from tightrope.summary.races import RaceKey, race_key, ratio_between
from tightrope.summary.recommend import rows_at, shapes_of
from tightrope.variants import QUANTIZED, UNQUANTIZED

Entry = dict[str, Any]
# best first
VERDICTS = QUANTIZE, UNDECIDED, DO_NOT = "quantize", "undecided", "do not quantize"
# accuracy verdicts from deployable to not deployable
STANDINGS = ("kept", "undecided", "dropped")
PLACE = ("model", "host", "device", "engine")
ACCURACY = ("delta", "delta_low", "delta_high", "flips", "samples", "verdict")
SPEEDUP = ("ratio", "low", "high", "verdict")
NO_RACE: Entry = {"raced": (), "heats": 0, "ratios": ()}

engine_of = itemgetter(*PLACE)


def quantizations(results: list[Entry], races: Mapping[RaceKey, Entry]) -> list[Entry]:
    """Return an entry per model, host, device, engine and shape with quantized and float variants.

    An entry needs a float variant measured at the shape and an INT8 or FP8 variant that was tried.
    It has the fields of `judged` for the best quantized variant (see `ranked`), the engine's other
    quantized variants in `others`, and in `unquantized` the float variant that they are compared
    with in the race.
    """
    found = []
    tried = [one for one in results if one["host"] is not None]
    for place in dict.fromkeys(map(engine_of, tried)):
        model, host, device, _ = place
        own = [one for one in tried if engine_of(one) == place]
        quantized = [one for one in own if one["precision"] in QUANTIZED]
        for shape in shapes_of(own) if quantized else ():
            rows = rows_at(own, shape)
            race = races.get(race_key(model, host, device, shape), NO_RACE)
            rival = best_unquantized(own, rows, race)
            if rival is not None:
                first, *others = ranked(quantized, rival, rows, race)
                named = {**dict(zip(PLACE, place, strict=True)), "shape": shape}
                pair = {"unquantized": rival["variant"], **first, "others": others}
                found.append({**named, **pair})
    return found


def best_unquantized(results: list[Entry], rows: dict[str, Entry], race: Entry) -> Entry | None:
    """Return the best measured float variant of an engine, or None.

    Variants that raced come first, then better accuracy verdicts (see STANDINGS), then lower
    latency.
    """
    measured = [
        one
        for one in results
        if one["precision"] in UNQUANTIZED
        and one["status"] == "ok"
        and seconds_of(one["variant"], rows) < math.inf
    ]

    def rank(one: Entry) -> tuple[Any, ...]:
        name = one["variant"]
        return name not in race["raced"], standing_of(one), seconds_of(name, rows)

    return min(measured, key=rank, default=None)


def seconds_of(name: str, rows: dict[str, Entry]) -> float:
    """Return the time per call by which variants are compared, infinite if there is none."""
    row = rows.get(name)
    return row["paired_s"] if row and row["paired_s"] is not None else math.inf


def ranked(
    quantized: list[Entry], rival: Entry, rows: dict[str, Entry], race: Entry
) -> list[Entry]:
    """Return the quantized variants as `judged`, best first.

    The order is by verdict, so that an engine is not worth quantizing only if none of its variants
    is; then failures last; then by accuracy verdict; then by latency. Measured variants that did
    not race because another quantized variant was better come last, since nothing more is known of
    them.
    """
    found = {one["variant"]: judged(one, rival, rows, race) for one in quantized}
    raced = {name for name in found if name in race["raced"]}

    def rank(one: Entry) -> tuple[Any, ...]:
        name = one["variant"]
        behind = bool(raced - {name}) and name not in raced and seconds_of(name, rows) < math.inf
        verdict = VERDICTS.index(found[name]["verdict"])
        return behind, verdict, one["status"] != "ok", standing_of(one), seconds_of(name, rows)

    return [found[one["variant"]] for one in sorted(quantized, key=rank)]


def judged(result: Entry, rival: Entry, rows: dict[str, Entry], race: Entry) -> Entry:
    """Return `variant`, `verdict` and `why`, with the evidence for them.

    `speedup` is over the engine's float variant `rival`, None if the two were not measured in the
    same rounds; `accuracy` is against the baseline, None if not evaluated; `failed` is the reason
    or None.
    """
    name, accuracy = result["variant"], result["accuracy"]
    speedup = ratio_between(race, name, rival["variant"]) or over_baseline(result, rival, rows)
    return {
        "variant": name,
        "verdict": advice(result, rival, speedup),
        "why": reasons(result, rival, rows, race, speedup),
        "failed": None if result["status"] == "ok" else result["reason"],
        "speedup": speedup and {key: speedup[key] for key in SPEEDUP},
        "accuracy": accuracy and {key: accuracy[key] for key in ACCURACY},
    }


def over_baseline(result: Entry, rival: Entry, rows: dict[str, Entry]) -> Entry | None:
    """Return the speed-up of `result` if `rival` is its paired baseline, else None."""
    row = rows.get(result["variant"])
    paired = row and row["speedup"] and row["speedup"]["ratio"] is not None
    return row["speedup"] if paired and rival["variant"] == result["baseline"] else None


def advice(result: Entry, rival: Entry, speedup: Entry | None) -> str:
    """Return one of VERDICTS.

    A slower variant is not rejected if the float variant has a worse accuracy verdict, since that
    float variant may not be deployable.
    """
    if result["status"] != "ok" or verdict_of(result) == "dropped":
        return DO_NOT
    if speedup is None:
        return UNDECIDED
    if speedup["high"] <= 1 and standing_of(rival) <= standing_of(result):
        return DO_NOT
    return QUANTIZE if speedup["low"] > 1 and standing_of(result) == 0 else UNDECIDED


def verdict_of(result: Entry) -> str | None:
    """Return the accuracy verdict, None if accuracy was not evaluated."""
    return result["accuracy"]["verdict"] if result["accuracy"] else None


def standing_of(result: Entry) -> int:
    """Return the rank of the accuracy verdict: 0 if kept or not evaluated, higher if worse."""
    return STANDINGS.index(verdict_of(result) or "kept")


def reasons(
    result: Entry, rival: Entry, rows: dict[str, Entry], race: Entry, speedup: Entry | None
) -> list[str]:
    """List all reasons for and against the variant, in words."""
    ok = result["status"] == "ok"
    found = [] if ok else [f"failed: {result['reason']}"]
    if ok or speedup is not None:
        beside = rival["variant"]
        known = speedup is not None
        found.append(
            speed_reason(beside, speedup) if known else why_not_raced(result, beside, rows, race)
        )
    if ok or result["accuracy"] is not None:
        found.append(accuracy_reason(result))
    if standing_of(rival):
        found.append(f"the accuracy of {rival['variant']} itself is {verdict_of(rival)}")
    return found


def why_not_raced(result: Entry, rival: str, rows: dict[str, Entry], race: Entry) -> str:
    """Explain why there is no speed-up over the float variant."""
    row = rows.get(result["variant"])
    if row is None:
        return "not measured at this shape"
    if {result["variant"], rival} <= set(race["raced"]):
        if race["heats"] > 1:
            return f"not raced with {rival}: the finalists did not fit in memory together"
        return f"too few undisturbed rounds paired with {rival}"
    if row["disturbed"]:
        return "disturbed by other load"
    return f"not raced with {rival}: another quantized variant is faster"


def speed_reason(rival: str, speedup: Entry) -> str:
    """Describe in words whether the variant is faster than the float variant."""
    if speedup["low"] > 1:
        word = "faster"
    elif speedup["high"] < 1:
        word = "slower"
    else:
        word = "no faster" if speedup["high"] == 1 else "not significantly faster"
    return f"{word} than {rival}"


def accuracy_reason(result: Entry) -> str:
    """Describe the accuracy verdict in words."""
    accuracy = result["accuracy"]
    if accuracy is None:
        return "accuracy was not evaluated: speed alone decides"
    if accuracy["verdict"] != "undecided":
        return f"accuracy {accuracy['verdict']}"
    if accuracy["delta"] is None:
        return "accuracy undecided: its baseline has no predictions"
    return "accuracy undecided: more samples can tell"
