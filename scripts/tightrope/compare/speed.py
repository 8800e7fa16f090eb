"""Which variants became faster or slower: speed-ups of two runs, over the same reference.

What can be told from noise: p values and their correction, scatter, the machine's speed.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tightrope.compare.read import Key, Report, RowKey
from tightrope.decide.result import interval_of
from tightrope.records.latency import DRIFT_SHARE
from tightrope.statistics import LEVEL, Interval, Z

NORMAL = statistics.NormalDist()
# distance of the median from the quartiles of a normal distribution, in standard deviations
QUARTILE = NORMAL.inv_cdf(0.75)
# fewest values for a scatter: the median of four is the mean of two
FEWEST = 5
# standard deviation of the logarithm of the baseline's time within a run, beyond which its ratios
# are not on one scale: docs/results/comparison.md
UNSTEADY = 0.4
# in the place of a reference, where both engines ran in the same rounds
SIDE_BY_SIDE = "itself, side by side"
SAME_RECORD = "the same measurement in both reports"


def p_value(z: float) -> float:
    """Return the two-sided p value of a standardized difference."""
    return 2 * NORMAL.cdf(-abs(z))


def verdicts(changes: Sequence[tuple[float, float]], words: tuple[str, str]) -> list[str]:
    """Return the word for less or for more of changes with these p values, `same` in the noise.

    P values are corrected for their number by Benjamini and Hochberg (1995, "Controlling the False
    Discovery Rate"): where no difference is real, all are `same` with a probability of 1 - LEVEL.
    """
    from scipy.stats import false_discovery_control  # 0.9 s

    ps = false_discovery_control([p for p, _ in changes])
    moved = [words[change > 0] for _, change in changes]
    return [word if p <= LEVEL else "same" for p, word in zip(ps, moved, strict=True)]


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


class Timed(NamedTuple):
    """A row of a report: median `seconds` per call or what comes next to it, and its speed-up.

    `log` is the logarithm of the speed-up over the baseline of its run, with the standard `error`;
    0 for the baseline itself, which was timed again with each of the others. `beside` is the
    logarithm of the seconds that the baseline took in the minutes of the row, where these tell the
    machine's speed. `why_not` says why there is no number that decides.
    """

    seconds: float | None
    log: float | None
    error: float
    beside: float | None
    disturbed: bool
    why_not: str | None


def timed(report: Report, row: RowKey) -> Timed:
    """Return what a report says of the time of a row."""
    entry = report.rows[row]
    known = entry.p50_s, entry.paired_s, entry.mean_s
    seconds = next((one for one in known if one and one > 0), None)
    disturbed = bool(entry.disturbed or (entry.speedup and entry.speedup.verdict == "disturbed"))
    log, error, why_not = None, 0.0, None
    ratio = interval_of(entry.speedup)
    if report.results[row.key].baseline == row.key.variant:
        log = 0.0
    else:
        if ratio and 0 < ratio.low < ratio.high:
            log, error = log_of(ratio)
        else:
            why_not = "no speed-up with an interval"
        if disturbed:
            why_not = "disturbed by other load"
            why_not += ", its numbers are provisional" * entry.provisional
    beside = math.log(seconds) + log if seconds and log is not None else None
    return Timed(seconds, log, error, beside, disturbed, why_not)


def log_of(ratio: Interval) -> tuple[float, float]:
    """Return the logarithm of a ratio with its standard error."""
    return math.log(ratio.value), math.log(ratio.high / ratio.low) / (2 * Z)


@dataclass(frozen=True)
class SpeedChange:
    """The time of a variant at a shape in the new report over that in the old one.

    `time` is relative to `reference`, with its 95 % interval; None with the `reason` where it is
    not judged. Times `old_s` and `new_s` are seconds per call, each of its own run. `log` is the
    logarithm of `time`, with its standard `error`.
    """

    row: RowKey
    old_s: float | None
    new_s: float | None
    reference: str | None = None
    log: float = 0.0
    error: float = 0.0
    time: Interval | None = None
    verdict: str = "not judged"
    reason: str | None = None

    @property
    def more(self) -> float:
        """Share by which the time is more by estimate; 0 where it is not judged."""
        return self.time.value - 1 if self.time else 0.0


def speed_changes(old: Report, new: Report, own: Collection[Key]) -> list[SpeedChange]:
    """Return the change of each row that both reports have, by model, shape and variant.

    `own` are the variants whose own libraries or settings differ, which are no reference.
    """
    groups = defaultdict(list)
    for row in sorted(old.rows.keys() & new.rows.keys()):
        groups[row.key.model, new.results[row.key].baseline, row.shape].append(row)
    found = [one for rows in groups.values() for one in of_group(old, new, rows, own)]
    rows = [one for one in found if one.reference]
    # what changes one engine and precision, such as a library, mostly changes all of its rows
    alike = defaultdict(list)
    for one in rows:
        result = new.results[one.row.key]
        alike[one.row.key.model, result.engine, result.precision].append(one.log / one.error)
    judged = iter(with_verdicts(rows, birge_ratio(alike.values())))
    return [next(judged) if one.reference else one for one in found]


def of_group(
    old: Report, new: Report, rows: list[RowKey], own: Collection[Key]
) -> Iterator[SpeedChange]:
    """Yield the changes of rows with the same baseline and shape, without verdicts.

    They are over the baseline, whose interval is 0, if it is the same in both reports, else over
    the unchanged row with the narrowest intervals.
    """
    pairs = {row: (timed(old, row), timed(new, row)) for row in rows}
    can = {
        row: math.hypot(*(one.error for one in pair))
        for row, pair in pairs.items()
        if row.key not in own and all(one.beside is not None and not one.disturbed for one in pair)
    }
    reference = min(can, key=lambda row: (can[row], row), default=None)
    runs = [
        [one.beside for one in ones if one.beside is not None and not one.disturbed]
        for ones in zip(*pairs.values(), strict=True)
    ]
    # standard deviation of the logarithm of the baseline's time within each run
    scatters = [statistics.stdev(logs) if len(logs) > 1 else 0.0 for logs in runs]
    for row, (before, after) in pairs.items():
        change = SpeedChange(row, before.seconds, after.seconds)
        results = (one.results[row.key] for one in (old, new))
        facts = {(one.engine_sha256, one.measured) for one in results}
        reasons = (
            (not reference, "no variant is unchanged and measured in both"),
            (row == reference, "the reference of the others"),
            (len(facts) == 1 and None not in facts.pop(), SAME_RECORD),
            (max(scatters) > UNSTEADY, "the baseline's time changed too much within a run"),
            (before.why_not, before.why_not),
            (after.why_not, after.why_not),
        )
        reason = next((words for holds, words in reasons if holds), None)
        if reason or not reference:
            yield replace(change, reason=reason)
            continue
        four = before, after, *pairs[reference]
        values = [one.log or 0.0 for one in four]
        log = values[0] - values[2] - (values[1] - values[3])
        # of the reference from run to run, or if larger of the baseline in the minutes of the row
        was, now = (one.seconds or 1.0 for one in pairs[reference])
        speeds = [abs(math.log(now / was))]
        if before.beside is not None and after.beside is not None:
            speeds.append(abs(after.beside - before.beside))
        unsteady = [DRIFT_SHARE * one for one in (max(speeds), *scatters)]
        error = math.hypot(*(one.error for one in four), *unsteady)
        yield replace(change, reference=reference.key.variant, log=log, error=error)


def with_verdicts(changes: Sequence[SpeedChange], scale: float = 1.0) -> list[SpeedChange]:
    """Return the changes with intervals and verdicts, all errors times `scale`."""
    ps = [(p_value(one.log / one.error / scale), one.log) for one in changes]

    def ends(one: SpeedChange) -> Interval:
        return Interval(*(math.exp(one.log + side * Z * scale * one.error) for side in (0, -1, 1)))

    pairs = zip(changes, verdicts(ps, ("faster", "slower")), strict=True)
    return [replace(one, time=ends(one), verdict=word, reason=None) for one, word in pairs]


def with_remeasured(
    changes: list[SpeedChange], found: Mapping[RowKey, Interval | str]
) -> list[SpeedChange]:
    """Return the changes, where engines were timed side by side by that alone.

    `found` has the time of the new engine over that of the old one with its 95 % interval, or why
    there is none: then the reports decide. P values are corrected among these rows.
    """
    beside = []
    for one in changes:
        time = found[one.row]
        if isinstance(time, Interval) and time.low > 0:
            log, error = log_of(time)
            beside.append(replace(one, reference=SIDE_BY_SIDE, log=log, error=error))
    judged = {one.row: one for one in with_verdicts(beside)}
    why = "not timed side by side: "
    return [judged.get(one.row, replace(one, reason=f"{why}{found[one.row]}")) for one in changes]
