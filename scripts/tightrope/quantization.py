"""To quantize or not: INT8 and FP8 of each engine beside the same engine in float."""

from operator import itemgetter
from typing import Any

from tightrope.recommend import best_of, rows_at, shapes_of, speedup_of
from tightrope.side_by_side import NOTHING, Compared, Pairs, pairs_at
from tightrope.statistics import Interval, speed_verdict
from tightrope.variants import QUANTIZED, UNQUANTIZED

Entry = dict[str, Any]
# the best first
VERDICTS = QUANTIZE, UNDECIDED, DO_NOT = "quantize", "undecided", "do not quantize"
# from answers that can be deployed to those that cannot
STANDINGS = ("kept", "undecided", "dropped")
PLACE = ("model", "host", "device", "engine")
ACCURACY = ("delta", "delta_low", "delta_high", "flips", "samples", "verdict")

engine_of = itemgetter(*PLACE)


def quantizations(results: list[Entry], compared: Compared = NOTHING) -> list[Entry]:
    """One for each model, host, device, engine and shape with both kinds of variants.

    That is where a variant in float was measured, and one in INT8 or FP8 was tried. Its fields are
    those of `judged` for the best quantized variant (`ranked`), with the others of that engine in
    `others`, and `unquantized`: the float variant that they are put against. `compared` has the
    rows of those that were timed beside it.
    """
    found = []
    tried = [one for one in results if one["host"] is not None]
    for place in dict.fromkeys(map(engine_of, tried)):
        here = [one for one in tried if engine_of(one)[:2] == place[:2]]
        own = [one for one in here if engine_of(one) == place]
        quantized = [one for one in own if one["precision"] in QUANTIZED]
        for shape in shapes_of(own) if quantized else ():
            rows = rows_at(here, shape)
            rival = best_unquantized(own, rows)
            if rival is not None:
                pairs = pairs_at(compared, *place[:2], shape)
                first, *others = ranked(quantized, rival, rows, pairs)
                named = {**dict(zip(PLACE, place, strict=True)), "shape": shape}
                pair = {"unquantized": rival["variant"], **first, "others": others}
                found.append({**named, **pair})
    return found


def best_unquantized(results: list[Entry], rows: dict[str, Entry]) -> Entry | None:
    """The float variant that `recommend` would choose if there were no others; None without one.

    Where the answers of none are kept, it is one whose answers could still be.
    """
    measured = [
        one
        for one in results
        if one["precision"] in UNQUANTIZED and one["status"] == "ok" and one["variant"] in rows
    ]
    if not measured:
        return None
    standing = min(map(standing_of, measured))
    best, _ = best_of([one for one in measured if standing_of(one) == standing], rows)
    return next(one for one in measured if one["variant"] == best)


def ranked(
    quantized: list[Entry], rival: Entry, rows: dict[str, Entry], pairs: Pairs
) -> list[Entry]:
    """The quantized variants as `judged`, the best of them first.

    The best has the best verdict of all, so that an engine is not worth quantizing only where none
    of its variants is; of those the answers that stand best; of those it is the one that
    `recommend` would choose.
    """
    found = {one["variant"]: judged(one, rival, rows, pairs) for one in quantized}

    def rank(one: Entry) -> tuple[int, ...]:
        verdict = VERDICTS.index(found[one["variant"]]["verdict"])
        return verdict, one["status"] != "ok", standing_of(one)

    foremost = min(map(rank, quantized))
    first = [one for one in quantized if rank(one) == foremost]
    measured = [one for one in first if one["variant"] in rows]
    best = best_of(measured, rows)[0] if measured else first[0]["variant"]
    order = sorted(quantized, key=lambda one: (one["variant"] != best, *rank(one)))
    return [found[one["variant"]] for one in order]


def judged(result: Entry, rival: Entry, rows: dict[str, Entry], pairs: Pairs) -> Entry:
    """`variant`, `verdict` and `why`, and what they rest on.

    `speedup` is over the engine's own float variant `rival`, None where that is not known, and
    `paired` whether it was measured in alternating blocks of the two; `accuracy` is against the
    baseline, None where it was not judged; `failed` is the reason or None, `noisy` whether a
    latency on which the speed-up rests is.
    """
    name, accuracy = result["variant"], result["accuracy"]
    pair = pairs.get((name, rival["variant"])) or beside_baseline(name, rival["variant"], rows)
    speedup = pair["speedup"] if pair else quotient(name, rival["variant"], rows)
    told = [pair] if pair else [rows.get(one, {}) for one in (name, rival["variant"])]
    return {
        "variant": name,
        "verdict": advice(result, rival, speedup),
        "why": reasons(result, rival, rows, speedup),
        "failed": None if result["status"] == "ok" else result["reason"],
        "speedup": speedup,
        "paired": pair is not None,
        "accuracy": accuracy and {name: accuracy[name] for name in ACCURACY},
        "noisy": any(row.get("noisy", False) for row in told),
    }


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


def beside_baseline(name: str, rival: str, rows: dict[str, Entry]) -> Entry | None:
    """The row of `name` where `rival` is the baseline, beside which it was timed; else None."""
    row = rows.get(name)
    return row if row and row["speedup"] and rival == row["baseline"] else None


def quotient(name: str, rival: str, rows: dict[str, Entry]) -> Entry | None:
    """How many times as fast as `rival` the variant is by their speed-ups over the baseline.

    None where one of the two has none. It is not paired:

        ratio = r_q / r_f, low = low_q / high_f, high = high_q / low_f

    On the log scale, where each interval is symmetric, the half-widths add up:
    log(r_q / r_f) plus or minus (h_q + h_f). As the standard deviation of a difference is at most
    the sum of the two, however they are correlated, this holds the truth at least as often as
    either interval does, where the errors are about normal; where nothing is known of them but that
    each interval holds in 95 %, in 90 % (Bonferroni). That is of the noise alone: a machine that
    changed between the two measurements is in the quotient.
    """
    if name not in rows or rival not in rows:
        return None
    ours, theirs = speedup_of(name, rows), speedup_of(rival, rows)
    if ours is None or theirs is None:
        return None
    ratio = ours["ratio"] / theirs["ratio"]
    low, high = ours["low"] / theirs["high"], ours["high"] / theirs["low"]
    verdict = speed_verdict(Interval(ratio, low, high))
    return {"ratio": ratio, "low": low, "high": high, "verdict": verdict}


def verdict_of(result: Entry) -> str | None:
    """The verdict on its accuracy, None where that was not judged."""
    return result["accuracy"]["verdict"] if result["accuracy"] else None


def standing_of(result: Entry) -> int:
    """0 where its answers can be deployed, as far as is known, more where they may not."""
    return STANDINGS.index(verdict_of(result) or "kept")


def reasons(
    result: Entry, rival: Entry, rows: dict[str, Entry], speedup: Entry | None
) -> list[str]:
    """All that speaks for and against the variant, in words."""
    ok = result["status"] == "ok"
    found = [] if ok else [f"failed: {result['reason']}"]
    if ok or speedup is not None:
        found.append(speed_reason(result, rival, rows, speedup))
    if ok or result["accuracy"] is not None:
        found.append(accuracy_reason(result))
    if standing_of(rival):
        found.append(f"the accuracy of {rival['variant']} itself is {verdict_of(rival)}")
    return found


def speed_reason(result: Entry, rival: Entry, rows: dict[str, Entry], speedup: Entry | None) -> str:
    """Whether it is faster than the float variant, in words."""
    if speedup is None:
        if result["variant"] not in rows:
            return "not measured at this shape"
        return f"not compared with {rival['variant']}: their baseline was not measured"
    if speedup["low"] > 1:
        word = "faster"
    elif speedup["high"] < 1:
        word = "slower"
    else:
        word = "no faster" if speedup["high"] == 1 else "not surely faster"
    return f"{word} than {rival['variant']}"


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
