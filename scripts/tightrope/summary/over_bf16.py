"""Speed-ups over PyTorch eager in bf16, which serves a model where fp32 would be slow."""

import math
from collections.abc import Mapping

from tightrope.statistics import Interval
from tightrope.summary.decision_types import Race
from tightrope.summary.races import RaceKey, race_key, ratio_between
from tightrope.summary.ratios import interval_of, ratio_entry
from tightrope.summary.result_types import LatencyRow, Ratio, Result
from tightrope.summary.speed_scale import rows_by_race
from tightrope.variants import Variant, parse

# of the baseline over itself
ONE = Interval(1.0, 1.0, 1.0)


def with_speedups_over_bf16(results: list[Result], races: Mapping[RaceKey, Race]) -> list[Result]:
    """Return the results with `speedup_over_bf16` in each latency row, see `over_bf16`."""
    rows = rows_by_race(results)
    return [
        {
            **result,
            "latency": [
                {**row, "speedup_over_bf16": over_bf16(result, row, rows, races)}
                for row in result["latency"]
            ],
        }
        for result in results
    ]


def over_bf16(
    result: Result,
    row: LatencyRow,
    rows: Mapping[RaceKey, Mapping[str, LatencyRow]],
    races: Mapping[RaceKey, Race],
) -> Ratio | None:
    """Return the time of `pytorch-bf16` over that of a variant, same device and shape.

    The ratio of the race where both raced, else the quotient of their speed-ups over the baseline.
    None for `pytorch-bf16` itself and where one of the two has no time.
    """
    key = race_key(result["model"], result["host"], result["device"], row)
    variant, host = result["variant"], parse(result["variant"]).host
    bf16 = str(Variant(result["device"], "pytorch", "bf16", host=host))
    theirs = rows[key].get(bf16)
    if theirs is None or variant == bf16:
        return None
    raced = interval_of(ratio_between(races[key], variant, bf16)) if key in races else None
    if raced is not None:
        return ratio_entry(raced)
    own = ONE if variant == result["baseline"] else interval_of(row["speedup"])
    other = interval_of(theirs["speedup"])
    return ratio_entry(quotient(own, other)) if own and other else None


def quotient(first: Interval, second: Interval) -> Interval:
    """Return the ratio of two independent ratios with its 95 % interval.

    The half widths of the logarithms add in quadrature: errors of a ratio are relative ones.
    """
    middle = math.log(first.value / second.value)
    half = math.hypot(*(math.log(one.high / one.value) for one in (first, second)))
    return Interval(*(math.exp(middle + end) for end in (0.0, -half, half)))
