"""What can be told from noise: p values and their correction, scatter, the machine's speed."""

import math
import statistics
from collections.abc import Collection, Sequence
from typing import NamedTuple

from tightrope.compare.read import Entry, Report, RowKey
from tightrope.records.latency import DRIFT_SHARE
from tightrope.statistics import LEVEL, Z

NORMAL = statistics.NormalDist()
# distance of the median from the quartiles of a normal distribution, in standard deviations
QUARTILE = NORMAL.inv_cdf(0.75)
# fewest values for a scatter: the median of four is the mean of two
FEWEST = 5
# standard deviation of the logarithm of the baseline's time within a run, beyond which its ratios
# are not on one scale: docs/results/comparison.md
UNSTEADY = 0.4


def p_value(z: float) -> float:
    """Return the two-sided p value of a standardized difference."""
    return 2 * NORMAL.cdf(-abs(z))


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number, by Benjamini and Hochberg.

    1995, "Controlling the False Discovery Rate". Rejecting those up to `LEVEL` rejects none with a
    probability of 1 - LEVEL where no difference is real, whatever their number.
    """
    count = len(p_values)
    found, lowest = [1.0] * count, 1.0
    for rank, place in sorted(enumerate(sorted(range(count), key=p_values.__getitem__)))[::-1]:
        lowest = min(lowest, p_values[place] * count / (rank + 1))
        found[place] = lowest
    return found


def is_beyond(p: float | None) -> bool:
    """Return whether a corrected p value is beyond the noise."""
    return p is not None and p <= LEVEL


def birge_ratio(groups: Collection[Sequence[float]]) -> float:
    """Return by which factor standardized differences scatter more than they should, at least 1.

    The Birge ratio (Birge 1932, "The Calculation of Errors by the Method of Least Squares") from
    the median distance to the median of each group, which a few real differences do not move. A
    difference of all of a group is no scatter. 1 with too few values in groups of several.
    """
    several = [group for group in groups if len(group) > 1]
    distances = [abs(one - statistics.median(group)) for group in several for one in group]
    free = len(distances) - len(several)
    if free < FEWEST - 1:
        return 1.0
    lost = math.sqrt(len(distances) / free)
    return max(1.0, lost * statistics.median(distances) / QUARTILE)


class Log(NamedTuple):
    """Logarithm of a speed-up over the baseline of its run, with its standard error."""

    value: float
    error: float


def log_of(report: Report, row: RowKey) -> Log | None:
    """Return the speed-up of a row, that of the baseline being 1; None where there is none."""
    if is_baseline(report, row):
        return Log(0.0, 0.0)
    speedup = report.rows[row].get("speedup") or {}
    low, ratio, high = (speedup.get(name) for name in ("low", "ratio", "high"))
    if not (low and ratio and high and low < high):
        return None
    return Log(math.log(ratio), math.log(high / low) / (2 * Z))


def is_baseline(report: Report, row: RowKey) -> bool:
    """Return whether a row is of the baseline, which was timed again with each of the others."""
    return report.results[row.key].get("baseline") == row.variant


def why_not(report: Report, row: RowKey) -> str | None:
    """Return why a row has no number that decides, None if it has one."""
    if is_baseline(report, row):
        return None
    return untimed_words(report.rows[row]) or (
        None if log_of(report, row) else "no speed-up with an interval"
    )


def is_untimed(report: Report, row: RowKey) -> bool:
    """Return whether a row has no seconds by which the machine's speed can be judged."""
    entry = report.rows[row]
    return untimed_words(entry) is not None or seconds_of(entry) is None


def untimed_words(entry: Entry) -> str | None:
    """Return that other load disturbed a row, None where it did not."""
    if entry.get("disturbed") or (entry.get("speedup") or {}).get("verdict") == "disturbed":
        words = "disturbed by other load"
        return f"{words}, its numbers are provisional" if entry.get("provisional") else words
    return None


def seconds_of(entry: Entry) -> float | None:
    """Return the median seconds per call of a row, or what comes next to it."""
    names = ("p50_s", "paired_s", "mean_s")
    return next((entry[name] for name in names if (entry.get(name) or 0) > 0), None)


def unsteadiness(old: Report, new: Report, row: RowKey, reference: RowKey) -> float:
    """Return the standard error of a row that comes from the machine's speed, besides intervals.

    It is `DRIFT_SHARE` of the change of the reference's time from run to run: of the reference's
    own or, if larger, of what the baseline took in the minutes of the row.
    """
    reports = old, new
    own = change_of([seconds_of(one.rows[reference]) for one in reports])
    beside = change_of([seconds_beside(one, row) for one in reports])
    return DRIFT_SHARE * max(own, beside)


def scatter(report: Report, rows: list[RowKey]) -> float:
    """Return the standard deviation of the logarithm of the baseline's time within a run.

    Of what it took in the minutes of each row of a group, as far as other load left a number.
    """
    times = (seconds_beside(report, row) for row in rows if not is_untimed(report, row))
    logs = [math.log(one) for one in times if one]
    return statistics.stdev(logs) if len(logs) > 1 else 0.0


def change_of(seconds: list[float | None]) -> float:
    """Return the size of the change of the logarithm, 0 where it is not known."""
    before, after = seconds
    return abs(math.log(after / before)) if before and after else 0.0


def seconds_beside(report: Report, row: RowKey) -> float | None:
    """Return what the baseline took in the minutes of a row: its seconds times its speed-up."""
    seconds, log = seconds_of(report.rows[row]), log_of(report, row)
    return None if seconds is None or log is None else seconds * math.exp(log.value)
