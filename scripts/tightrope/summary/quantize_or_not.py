"""To quantize or not: INT8 and FP8 of each engine paired with the same engine in float."""

import math
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from tightrope.summary.races import RaceKey, race_key, ratio_between
from tightrope.summary.recommend import rows_at, shapes_of
from tightrope.variants import QUANTIZED, UNQUANTIZED

Entry = dict[str, Any]
# the best first
VERDICTS = QUANTIZE, UNDECIDED, DO_NOT = "quantize", "undecided", "do not quantize"
# from answers that can be deployed to those that cannot
STANDINGS = ("kept", "undecided", "dropped")
PLACE = ("model", "host", "device", "engine")
ACCURACY = ("delta", "delta_low", "delta_high", "flips", "samples", "verdict")
SPEEDUP = ("ratio", "low", "high", "verdict")
NO_RACE: Entry = {"raced": (), "heats": 0, "ratios": ()}

engine_of = itemgetter(*PLACE)


def quantizations(results: list[Entry], races: Mapping[RaceKey, Entry]) -> list[Entry]:
    """One for each model, host, device, engine and shape with both kinds of variants.

    That is where a variant in float was measured, and one in INT8 or FP8 was tried. Its fields are
    those of `judged` for the best quantized variant (`ranked`), with the others of that engine in
    `others`, and `unquantized`: the float variant that they are put against, in the rounds of the
    race.
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
    """The fastest float variant of an engine that raced, else that was measured; None without one.

    Where the answers of none are kept, it is one whose answers could still be.
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
    """The time of a call by which variants are compared, infinite where there is none."""
    row = rows.get(name)
    return row["paired_s"] if row and row["paired_s"] is not None else math.inf


def ranked(
    quantized: list[Entry], rival: Entry, rows: dict[str, Entry], race: Entry
) -> list[Entry]:
    """The quantized variants as `judged`, the best of them first.

    The best has the best verdict of all, so that an engine is not worth quantizing only where none
    of its variants is; of those the answers that stand best; of those the fastest. Those that did
    not race because another one of them was better come last: nothing more is known of them.
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
    """`variant`, `verdict` and `why`, and what they rest on.

    `speedup` is over the engine's own float variant `rival`, None where the two were not measured
    in the same rounds; `accuracy` is against the baseline, None where it was not judged; `failed`
    is the reason or None.
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
    """The speed-up of `result` where `rival` is the baseline that it was paired with."""
    row = rows.get(result["variant"])
    paired = row and row["speedup"] and row["speedup"]["ratio"] is not None
    return row["speedup"] if paired and rival["variant"] == result["baseline"] else None


def advice(result: Entry, rival: Entry, speedup: Entry | None) -> str:
    """One of VERDICTS.

    Being slower is no reason beside a float variant whose answers stand worse: that one may be no
    choice.
    """
    if result["status"] != "ok" or verdict_of(result) == "dropped":
        return DO_NOT
    if speedup is None:
        return UNDECIDED
    if speedup["high"] <= 1 and standing_of(rival) <= standing_of(result):
        return DO_NOT
    return QUANTIZE if speedup["low"] > 1 and standing_of(result) == 0 else UNDECIDED


def verdict_of(result: Entry) -> str | None:
    """The verdict on its accuracy, None where that was not judged."""
    return result["accuracy"]["verdict"] if result["accuracy"] else None


def standing_of(result: Entry) -> int:
    """0 where its answers can be deployed, as far as is known, more where they may not."""
    return STANDINGS.index(verdict_of(result) or "kept")


def reasons(
    result: Entry, rival: Entry, rows: dict[str, Entry], race: Entry, speedup: Entry | None
) -> list[str]:
    """All that speaks for and against the variant, in words."""
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
    """Why there is no speed-up over the float variant, in words."""
    row = rows.get(result["variant"])
    if row is None:
        return "not measured at this shape"
    if {result["variant"], rival} <= set(race["raced"]):
        if race["heats"] > 1:
            return f"not raced with {rival}: the finalists did not fit the memory together"
        return f"too few undisturbed rounds beside {rival}"
    if row["disturbed"]:
        return "disturbed by other load"
    return f"not raced with {rival}: another quantized variant is faster"


def speed_reason(rival: str, speedup: Entry) -> str:
    """Whether it is faster than the float variant, in words."""
    if speedup["low"] > 1:
        word = "faster"
    elif speedup["high"] < 1:
        word = "slower"
    else:
        word = "no faster" if speedup["high"] == 1 else "not surely faster"
    return f"{word} than {rival}"


def accuracy_reason(result: Entry) -> str:
    """What is known of its answers, in words."""
    accuracy = result["accuracy"]
    if accuracy is None:
        return "accuracy was not judged: speed alone decides"
    if accuracy["verdict"] != "undecided":
        return f"accuracy {accuracy['verdict']}"
    if accuracy["delta"] is None:
        return "accuracy undecided: its baseline has no predictions"
    return "accuracy undecided: more samples can tell"
