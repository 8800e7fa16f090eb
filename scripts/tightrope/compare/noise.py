"""What a comparison of many rows can tell from noise: p values, their correction, a scatter."""

import math
import statistics
from collections.abc import Collection, Sequence

from tightrope.statistics import LEVEL

NORMAL = statistics.NormalDist()
# distance of the median from the quartiles of a normal distribution, in standard deviations
QUARTILE = NORMAL.inv_cdf(0.75)
# fewest values for a scatter: the median of four is the mean of two
FEWEST = 5


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
