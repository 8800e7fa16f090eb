"""A common speed-up scale for raced and other variants, so that text and charts agree."""

import math
import statistics
from collections.abc import Iterable, Mapping

from tightrope.statistics import Interval
from tightrope.summary.decision_types import Race
from tightrope.summary.races import RaceKey, race_key, ratio_between
from tightrope.summary.ratios import interval_of, ratio_entry
from tightrope.summary.result_types import LatencyRow, Ratio, Result


def on_one_scale(rows: Mapping[str, LatencyRow], race: Race, baseline: str) -> dict[str, Ratio]:
    """Return the speed-ups of the raced variants over the baseline, from the race ratios.

    All ratios share one scale factor, so that they cannot contradict the race. It is the baseline's
    race ratio if the baseline raced, else the geometric mean of paired speed-up over race ratio,
    clamped to the interval of the best variant: a variant left out of the race because it was
    significantly slower stays slower. Each interval adds those of the scale and of the race in
    quadrature.
    """
    chosen = race["variant"]
    if chosen is None:
        return {}
    ratios = ((name, interval_of(ratio_between(race, name, chosen))) for name in race["raced"])
    known = {name: logs(one) for name, one in ratios if one} | {chosen: (0.0, 0.0)}
    if baseline in known:
        scale, half = -known[baseline][0], known[baseline][1]
    else:
        paired = {
            name: logs(speedup)
            for name, row in rows.items()
            if name in known and (speedup := interval_of(row["speedup"]))
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


def logs(ratio: Interval) -> tuple[float, float]:
    """Return the log of a ratio and half the width of its interval in log space."""
    return math.log(ratio.value), math.log(ratio.high / ratio.low) / 2


def with_races(results: list[Result], races: Mapping[RaceKey, Race]) -> list[Result]:
    """Return the results with `raced` and `paired_s` in each latency row, on a common scale.

    `paired_s` is the baseline's median over the speed-up. Charts and the decision both compare it,
    so that they agree. Without a speed-up it is the row's own median, None if disturbed. The time
    of a disturbed baseline is estimated from the variants paired with it.
    """
    rows, baselines = rows_by_race(results), baselines_of(results)
    scales = {
        (key, variant): speedup
        for key, race in races.items()
        if key in rows
        for variant, speedup in on_one_scale(rows[key], race, baselines[key[:3]]).items()
    }
    return [
        {**result, "latency": [placed(result, row, rows, scales) for row in result["latency"]]}
        for result in results
    ]


def rows_by_race(results: Iterable[Result]) -> dict[RaceKey, dict[str, LatencyRow]]:
    """Return the latency rows of one model, host, device and shape, by variant."""
    rows: dict[RaceKey, dict[str, LatencyRow]] = {}
    for result in results:
        for row in result["latency"]:
            key = race_key(result["model"], result["host"], result["device"], row)
            rows.setdefault(key, {})[result["variant"]] = row
    return rows


def baselines_of(results: Iterable[Result]) -> dict[tuple[str, str | None, str], str]:
    """Return the baseline of the variants of a model on a host and device, the first named."""
    found: dict[tuple[str, str | None, str], str] = {}
    for one in results:
        if one["baseline"]:
            found.setdefault((one["model"], one["host"], one["device"]), one["baseline"])
    return found


def placed(
    result: Result,
    row: LatencyRow,
    rows: Mapping[RaceKey, Mapping[str, LatencyRow]],
    scales: Mapping[tuple[RaceKey, str], Ratio],
) -> LatencyRow:
    """Return a row with `raced`, `paired_s` and, if it raced, the race's speed-up."""
    key = race_key(result["model"], result["host"], result["device"], row)
    raced = scales.get((key, result["variant"]))
    speedup = raced or row["speedup"]
    seconds = own_seconds(row)
    if speedup and speedup["ratio"] is not None:
        seconds = baseline_seconds(rows[key], result["baseline"]) / speedup["ratio"]
    return {**row, "speedup": speedup, "raced": raced is not None, "paired_s": seconds}


def own_seconds(row: LatencyRow) -> float | None:
    """Return the median time per call, the mean for few calls, None if disturbed."""
    return row["p50_s"] or row["mean_s"]


def baseline_seconds(rows: Mapping[str, LatencyRow], baseline: str | None) -> float:
    """Return the baseline's time per call, estimated from its paired variants if disturbed."""
    if baseline is not None and baseline in rows and (seconds := own_seconds(rows[baseline])):
        return seconds
    return statistics.geometric_mean(
        seconds * speedup.value
        for row in rows.values()
        if (speedup := interval_of(row["speedup"])) and (seconds := own_seconds(row))
    )
