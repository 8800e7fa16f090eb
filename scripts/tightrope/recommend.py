"""Which variant to deploy for each shape: the fastest whose answers are kept."""

from typing import Any

from tightrope.side_by_side import NOTHING, Compared, Pairs, pairs_at, shape_of
from tightrope.variants import parse

Entry = dict[str, Any]


def recommendations(results: list[Entry], compared: Compared = NOTHING) -> list[Entry]:
    """One for each model, host and shape; `variant` is None where nothing qualifies.

    Times of two hosts are never put against each other: each host has its own. `compared` has
    the rows of quantized variants that were timed beside their own engine in float.
    """
    found = []
    places = dict.fromkeys((one["model"], one["host"]) for one in results if one["latency"])
    for model, host in places:
        own = [one for one in results if one["model"] == model and one["host"] in (host, None)]
        for shape in shapes_of(own):
            chosen = choose(own, shape, pairs_at(compared, model, host, shape))
            found.append({"model": model, "host": host, "shape": shape, **chosen})
    return found


def shapes_of(results: list[Entry]) -> list[Entry]:
    """Each shape at which one of the results was measured, once."""
    shapes = [shape_of(row) for result in results for row in result["latency"]]
    return list({tuple(shape.items()): shape for shape in shapes}.values())


def choose(results: list[Entry], shape: Entry, pairs: Pairs = NOTHING) -> Entry:
    """`variant`, `why` and `rejected` among the results of one model at one shape.

    What was timed side by side is told from that: its loser is not chosen, whatever the speed-ups
    over the baseline say.
    """
    rows = rows_at(results, shape)
    reasons = {result["variant"]: disqualified(result, rows) for result in results}
    fit = [result for result in results if reasons[result["variant"]] is None]
    if not fit:
        measured = any(result["status"] == "ok" for result in results)
        words = "no variant keeps the answers" if measured else "nothing could be measured"
        return {"variant": None, "why": words, "rejected": listed(reasons)}
    lost = losers({result["variant"] for result in fit}, pairs)
    reasons |= lost
    rest = [result for result in fit if result["variant"] not in lost]
    best, fastest = best_of(rest, rows)
    for result in rest:
        tie = within_noise(result["variant"], fastest, rows)
        reasons[result["variant"]] = beaten(result["variant"], rows, tie=tie)
    del reasons[best]
    return {
        "variant": best,
        "why": why(best, fastest, rows, who(fit)),
        "rejected": listed(reasons),
    }


def losers(names: set[str], pairs: Pairs) -> dict[str, str]:
    """Which of these are surely slower than another of them that was beside them, and why.

    Empty where it would be all of them.
    """
    found = {}
    for (quantized, plain), row in pairs.items():
        if {quantized, plain} <= names:
            told = f"{quantized} is {times(row['speedup'], f'as fast as {plain}')}"
            if row["speedup"]["high"] < 1:
                found[quantized] = f"slower than its engine in float: side by side, {told}"
            elif row["speedup"]["low"] > 1:
                found[plain] = f"slower than its engine quantized: side by side, {told}"
    return found if len(found) < len(names) else {}


def rows_at(results: list[Entry], shape: Entry) -> dict[str, Entry]:
    """By variant, the latency row of this shape with the name of what it was compared with."""
    return {
        result["variant"]: {**row, "baseline": result["baseline"]}
        for result in results
        for row in result["latency"]
        if shape_of(row) == shape
    }


def best_of(fit: list[Entry], rows: dict[str, Entry]) -> tuple[str, str]:
    """The best of these results and the fastest of them, which are two where a tie is smaller."""
    seconds = {result["variant"]: estimate(result["variant"], rows) for result in fit}
    fastest = min(fit, key=lambda result: seconds[result["variant"]])["variant"]
    equal = [result for result in fit if within_noise(result["variant"], fastest, rows)]
    best = min(equal, key=lambda one: (one["size_bytes"], seconds[one["variant"]]))["variant"]
    return best, fastest


def listed(reasons: dict[str, str]) -> list[Entry]:
    """The rejected variants with their reasons."""
    return [{"variant": name, "reason": reason} for name, reason in reasons.items()]


def estimate(name: str, rows: dict[str, Entry]) -> float:
    """Seconds of a call: the baseline's own mean over the low end of the paired speed-up.

    On one device this orders variants by the speed-up that they are sure to have, so that a
    wide interval wins nothing; between devices it compares their times.
    """
    base = rows.get(rows[name]["baseline"])
    if base is None or rows[name]["speedup"] is None:
        return rows[name]["mean_s"]
    return base["mean_s"] / rows[name]["speedup"]["low"]


def within_noise(name: str, fastest: str, rows: dict[str, Entry]) -> bool:
    """Whether the speed-up of `name` lies within the interval of the fastest on its device."""
    if name == fastest:
        return True
    ours, best = speedup_of(name, rows), speedup_of(fastest, rows)
    same_device = parse(name).device == parse(fastest).device
    return bool(same_device and ours and best and ours["ratio"] >= best["low"])


def speedup_of(name: str, rows: dict[str, Entry]) -> Entry | None:
    """The speed-up of `name`, 1 for the baseline; None where the baseline was not measured."""
    if is_baseline(name, rows):
        return {"ratio": 1.0, "low": 1.0, "high": 1.0}
    return rows[name]["speedup"]


def is_baseline(name: str, rows: dict[str, Entry]) -> bool:
    """Whether the other variants of its device are compared with `name`."""
    return name == rows[name]["baseline"]


def disqualified(result: Entry, rows: dict[str, Entry]) -> str | None:
    """Why this result cannot be deployed at all, else None."""
    if result["status"] != "ok":
        return f"{result['status']}: {result['reason']}"
    if result["variant"] not in rows:
        return "not measured at this shape"
    accuracy = result["accuracy"]
    if accuracy is None or accuracy["verdict"] == "kept":
        return None
    if accuracy["delta"] is None:
        return "accuracy undecided: its baseline has no predictions"
    return f"accuracy {accuracy['verdict']}: {points(accuracy)}"


def beaten(name: str, rows: dict[str, Entry], *, tie: bool) -> str:
    """Why a variant that keeps the answers was not chosen; `tie` with the fastest or not."""
    ours = "it is the baseline" if is_baseline(name, rows) else speed(rows[name])
    if tie:
        return f"as fast within the noise ({ours}), but its files are no smaller"
    return f"slower: {ours}"


def who(fit: list[Entry]) -> str:
    """The variants among which is chosen, in words."""
    judged = all(result["accuracy"] is not None for result in fit)
    return f"{len(fit)} variants " + ("that keep the answers" if judged else "measured")


def why(best: str, fastest: str, rows: dict[str, Entry], others: str) -> str:
    """What speaks for the chosen variant, one of `others`."""
    if best != fastest:
        return f"as fast as {fastest} within the noise, and its files are smaller"
    if is_baseline(best, rows):
        return f"none of the {others} is faster than this baseline"
    return f"the fastest of the {others}"


def speed(row: Entry) -> str:
    """The speed-up of a row with its interval, without a baseline the time of a call."""
    speedup = row["speedup"]
    if speedup is None:
        return f"{1000 * row['mean_s']:.3g} ms a call"
    return times(speedup, "the baseline")


def times(speedup: Entry, other: str) -> str:
    """A speed-up over `other` with its interval."""
    low, high = speedup["low"], speedup["high"]
    return f"{speedup['ratio']:.2f} times {other} ({low:.2f} to {high:.2f})"


def points(accuracy: Entry) -> str:
    """A change of accuracy in points with its interval."""
    low, high = 100 * accuracy["delta_low"], 100 * accuracy["delta_high"]
    text = f"{100 * accuracy['delta']:+.1f} points ({low:+.1f} to {high:+.1f})"
    return text.replace("-", "\N{MINUS SIGN}")
