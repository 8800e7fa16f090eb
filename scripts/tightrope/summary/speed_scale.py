"""One scale of speed for what raced and what did not, so that text and charts cannot disagree."""

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.statistics import Interval
from tightrope.summary.races import RaceKey, race_key, ratio_between
from tightrope.summary.results import ratio_entry

Entry = dict[str, Any]


def on_one_scale(rows: Mapping[str, Entry], race: Entry, baseline: str) -> dict[str, Entry]:
    """The speed-ups of those that raced, over the baseline and by the ratios of the race.

    All are put on the scale of one of them, so that they cannot contradict the race: that of the
    baseline where it raced, else the mean over all that raced, kept within the interval of the
    best: so who did not race because it was surely behind that stays behind. An interval adds up,
    in quadrature, that of the scale and that of the race.
    """
    chosen = race["variant"]
    if chosen is None:
        return {}
    against = {name: ratio_between(race, name, chosen) for name in race["raced"] if name != chosen}
    known = {name: logs(entry) for name, entry in against.items() if entry} | {chosen: (0.0, 0.0)}
    if baseline in known:
        scale, half = -known[baseline][0], known[baseline][1]
    else:
        paired = {
            name: logs(row["speedup"])
            for name, row in rows.items()
            if name in known and row["speedup"] and row["speedup"]["ratio"]
        }
        if not paired:
            return {}
        best = max(paired, key=lambda name: paired[name][0] - paired[name][1])
        half = paired[best][1]
        mean = statistics.fmean(value - known[name][0] for name, (value, _) in paired.items())
        middle = paired[best][0] - known[best][0]
        scale = min(max(mean, middle - half), middle + half)
    found = {}
    for name, (off, own_half) in known.items():
        if name == baseline:
            continue
        both = math.hypot(own_half, half)
        ends = Interval(*(math.exp(scale + off + end) for end in (0.0, -both, both)))
        found[name] = ratio_entry(ends)
    return found


def logs(entry: Mapping[str, Any]) -> tuple[float, float]:
    """The logarithm of a ratio, and half the width of its interval there."""
    return math.log(entry["ratio"]), math.log(entry["high"] / entry["low"]) / 2


def with_races(results: list[Entry], races: Mapping[RaceKey, Entry]) -> list[Entry]:
    """The results with rows on one scale: `raced`, and `paired_s`.

    That is the baseline's median over the speed-up, the time by which charts and the decision
    compare, so that they cannot contradict each other; without a speed-up the row's own median,
    None where it was disturbed. A disturbed baseline takes what its variants say of it.
    """
    rows: dict[RaceKey, dict[str, Entry]] = {}
    for result in results:
        for row in result["latency"]:
            key = race_key(result["model"], result["host"], result["device"], row)
            rows.setdefault(key, {})[result["variant"]] = row
    scales = {
        (key, variant): speedup
        for key, race in races.items()
        if key in rows
        for variant, speedup in on_one_scale(rows[key], race, baseline_of(results, key)).items()
    }
    return [
        {**result, "latency": [placed(result, row, rows, scales) for row in result["latency"]]}
        for result in results
    ]


def baseline_of(results: Iterable[Entry], key: RaceKey) -> str:
    """The variant with which those of a race were compared."""
    return next(
        one["baseline"]
        for one in results
        if (one["model"], one["host"], one["device"]) == key[:3] and one["baseline"]
    )


def placed(
    result: Entry,
    row: Entry,
    rows: Mapping[RaceKey, Mapping[str, Entry]],
    scales: Mapping[tuple[RaceKey, str], Entry],
) -> Entry:
    """A row with `raced` and `paired_s`, and the race's speed-up where it raced."""
    key = race_key(result["model"], result["host"], result["device"], row)
    raced = scales.get((key, result["variant"]))
    speedup = raced or row["speedup"]
    seconds = own_seconds(row)
    if speedup and speedup["ratio"]:
        seconds = baseline_seconds(rows[key], result["baseline"]) / speedup["ratio"]
    return {**row, "speedup": speedup, "raced": raced is not None, "paired_s": seconds}


def own_seconds(row: Entry) -> float | None:
    """The median time of a call, of a few calls the mean; None where it was disturbed."""
    return row["p50_s"] or row["mean_s"]


def baseline_seconds(rows: Mapping[str, Entry], baseline: str) -> float:
    """The baseline's time of a call; where it was disturbed, by the variants paired with it."""
    if baseline in rows and (seconds := own_seconds(rows[baseline])):
        return seconds
    return statistics.geometric_mean(
        own_seconds(row) * row["speedup"]["ratio"]
        for row in rows.values()
        if row["speedup"] and row["speedup"]["ratio"]
    )
