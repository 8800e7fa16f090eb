"""Statistics of records: confidence intervals, tests and verdicts."""

import math
import random
import statistics
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple

# fewest samples for a percentile at confidence 0.99, by MLPerf's rule (MLCommons inference
# rules, "latency-bound scenarios"): p50 11, p90 64, p99 662
SAMPLES_FOR_PERCENTILE = {50: 11, 90: 64, 99: 662}
LEVEL = 0.05  # significance level of tests; intervals have confidence 1 - LEVEL
Z = 1.959963984540054  # 97.5 % point of the normal distribution
Z_POWER = 0.8416212335729143  # 80 % point of the normal distribution
RESAMPLES = 2000
TRIM = 0.2  # share of values that a trimmed mean leaves out at each end
# standard deviation of the log time between loads: docs/results/measurement.md
LOAD_SPREAD = 0.005
MOST_SAMPLES = 1_000_000  # that `samples_to_keep` suggests
SpeedVerdict = Literal["faster", "slower", "tie"]
AccuracyVerdict = Literal["kept", "dropped", "undecided"]


class Interval(NamedTuple):
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float


def percentile(samples: list[float], percent: int) -> float | None:
    """Return the nearest-rank percentile, None with too few samples to support it."""
    if len(samples) < SAMPLES_FOR_PERCENTILE[percent]:
        return None
    return sorted(samples)[math.ceil(len(samples) * percent / 100) - 1]


def speedup(
    blocks: list[list[float]],
    baseline_blocks: list[list[float]],
    *,
    loads: int = 2,
    level: float = LEVEL,
    unsteady: float = 0.0,
) -> Interval:
    """Return baseline time over own time, with its confidence interval.

    The estimate is the trimmed mean over pairs of the log ratio of block medians. `blocks` and
    `baseline_blocks` are seconds per call; blocks of the same index were measured next to each
    other. The interval adds three parts in quadrature: that of the pairs, see `trimmed_mean`; the
    variation between loads of the same engine (`LOAD_SPREAD`), with each of the two loaded `loads`
    times; and `unsteady`, the standard deviation of the log ratio from minute to minute. More pairs
    do not reduce the last two.
    """
    logs = [
        math.log(statistics.median(theirs) / statistics.median(own))
        for own, theirs in zip(blocks, baseline_blocks, strict=True)
    ]
    middle = trimmed_mean(logs, level=level)
    point = statistics.NormalDist().inv_cdf(1 - level / 2)
    off = point * math.hypot(LOAD_SPREAD * math.sqrt(2 / loads), unsteady)
    half = math.hypot(middle.high - middle.value, off)
    if half == math.inf:
        return Interval(math.exp(middle.value), 0.0, math.inf)
    return Interval(*(math.exp(middle.value + end) for end in (0.0, -half, half)))


def trimmed_mean(values: Sequence[float], *, level: float = LEVEL) -> Interval:
    """Return the mean without the lowest and highest fifth of the values, with its interval.

    Student's t with the Winsorized standard error (Tukey and McLaughlin 1963, "Less vulnerable
    confidence and significance procedures for location based on a single sample"). A pair of blocks
    is an outlier when the clock frequency changes between its blocks, and would shift a plain mean.
    Where trimming leaves fewer than two values the ends are infinite.
    """
    ordered = sorted(values)
    count, cut = len(ordered), int(TRIM * len(ordered))
    kept = ordered[cut : count - cut]
    mean = statistics.fmean(kept)
    if len(kept) < 2:
        return Interval(mean, -math.inf, math.inf)
    winsorized = [kept[0]] * cut + kept + [kept[-1]] * cut
    middle = statistics.fmean(winsorized)
    squares = math.fsum((value - middle) ** 2 for value in winsorized)
    error = math.sqrt(squares / (len(kept) * (len(kept) - 1)))
    half = student_point(len(kept) - 1, level) * error
    return Interval(mean, mean - half, mean + half)


def unpaired_speedup(own: list[float], baseline: list[float]) -> Interval:
    """Return baseline time over own time, for repeats not measured next to each other.

    The ratio of geometric means with a symmetric bootstrap (Hall 1988, "On Symmetric Bootstrap
    Confidence Intervals") that resamples both lists independently, from a fixed seed. For few
    repeats it is widened by sqrt(n / (n - 1)) and to Student's t (Hesterberg 2015, "What Teachers
    Should Know About the Bootstrap"), with the degrees of freedom of Welch (1947), "The
    generalization of 'Student's' problem when several different population variances are involved".
    """
    logs, theirs = [[math.log(value) for value in values] for values in (own, baseline)]
    mean = statistics.fmean(theirs) - statistics.fmean(logs)
    count = min(len(logs), len(theirs))
    if count < 2:
        return Interval(math.exp(mean), 0.0, math.inf)
    parts = [(statistics.variance(one) / len(one), len(one) - 1) for one in (logs, theirs)]
    squares = sum(part**2 / degrees for part, degrees in parts)
    degrees = int(sum(part for part, _ in parts) ** 2 / squares) if squares else count - 1
    draw = random.Random(0)

    def drawn(values: list[float]) -> float:
        return statistics.fmean(draw.choices(values, k=len(values)))

    off = sorted(abs(drawn(theirs) - drawn(logs) - mean) for _ in range(RESAMPLES))
    wider = math.sqrt(count / (count - 1)) * student_point(degrees) / Z
    half = wider * off[round(0.95 * (RESAMPLES - 1))]
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


@cache
def student_point(degrees: int, level: float = LEVEL) -> float:
    """Return the two-sided critical value of Student's t: the 97.5 % point at level 0.05."""
    from scipy.special import stdtrit  # accuracy statistics need no NumPy

    return float(stdtrit(degrees, 1 - level / 2))


def speed_verdict(interval: Interval) -> SpeedVerdict:
    """Return `faster` or `slower` where the whole interval is on that side of 1, else `tie`."""
    if interval.low > 1:
        return "faster"
    return "slower" if interval.high < 1 else "tie"


def share(successes: int, samples: int) -> Interval:
    """Return a proportion of successes with Wilson's interval (Wilson 1927)."""
    estimate = successes / samples
    scale = 1 + Z**2 / samples
    centre = (estimate + Z**2 / (2 * samples)) / scale
    half = Z / scale * math.sqrt(estimate * (1 - estimate) / samples + (Z / (2 * samples)) ** 2)
    return Interval(estimate, max(0.0, centre - half), min(1.0, centre + half))


def paired_difference(gained: float, lost: float, samples: float) -> Interval:
    """Return the change of a proportion on the same samples, of which `gained` and `lost` changed.

    Interval of Bonett and Price (2012), "Adjusted Wald confidence interval for a difference
    of binomial proportions based on paired data": keeps its coverage with few or no changes.
    """
    more, fewer = (gained + 1) / (samples + 2), (lost + 1) / (samples + 2)
    centre = more - fewer
    half = Z * math.sqrt((more + fewer - centre**2) / (samples + 2))
    return Interval((gained - lost) / samples, max(-1.0, centre - half), min(1.0, centre + half))


def mcnemar_p_value(gained: int, lost: int) -> float:
    """Return the two-sided exact p value of McNemar's test (binomial, 1/2); 1 without a change."""
    changes, rarer = gained + lost, min(gained, lost)
    tail = sum(math.comb(changes, k) for k in range(rarer + 1))
    return min(1.0, 2 * tail / 2**changes)


def accuracy_verdict(difference: Interval, budget: float) -> AccuracyVerdict:
    """Return `kept` where the whole interval is within the budget, `dropped` where it is outside.

    `budget` is the fraction by which accuracy may fall. In between: `undecided`.
    """
    if difference.low >= -budget:
        return "kept"
    return "dropped" if difference.high < -budget else "undecided"


def samples_to_keep(gained: int, lost: int, samples: int, budget: float) -> int | None:
    """Return about how many samples would show that accuracy is kept, to two digits.

    It is assumed that the same shares of them are `gained` and `lost` as of these `samples`. None
    where then no number up to `MOST_SAMPLES` shows it, because the drop itself is too large.
    """
    if not samples:
        return None

    def is_kept(count: float) -> bool:
        # rates, not counts: the interval is a formula in both
        scale = count / samples
        expected = paired_difference(gained * scale, lost * scale, count)
        return accuracy_verdict(expected, budget) == "kept"

    counts = sample_counts(samples)
    # more samples never change a kept accuracy: the interval narrows faster than its centre moves
    place = bisect_left(counts, True, key=is_kept)
    if place == len(counts):
        return None
    digits = 1 - math.floor(math.log10(counts[place]))
    return math.ceil(counts[place] * 10.0**digits) * round(10.0**-digits) if digits <= 0 else 10


@cache
def sample_counts(samples: int) -> list[float]:
    """Return counts from `samples` to `MOST_SAMPLES`, each 2 % more than the one before."""
    counts = [float(samples)] if samples <= MOST_SAMPLES else []
    while counts and counts[-1] * 1.02 <= MOST_SAMPLES:
        counts.append(counts[-1] * 1.02)
    return counts


def detectable_drop(changed: int, samples: int) -> float:
    """Return the smallest drop that McNemar's test detects with power 0.8 at level 0.05.

    A fraction; 1 where the samples are too few to detect any drop. `changed` of the `samples` are
    gained or lost: the spread comes from their share, with one more on either side as in
    `paired_difference`. Sample size of Connor (1987), "Sample size for testing differences in
    proportions for the paired-sample design", solved for the difference. A drop cannot exceed the
    share of changed samples: where it would, the share is set to the drop.
    """
    if mcnemar_p_value(0, samples) >= LEVEL:
        return 1.0
    narrower = math.sqrt(samples - Z**2 + Z_POWER**2)
    unit = (Z * math.sqrt(samples) + Z_POWER * narrower) / (samples + Z_POWER**2)
    spread = max((changed + 2) / (samples + 2), unit**2)
    return unit * math.sqrt(spread)
