"""Exact tests that a share of answers lost on the same examples is below a bound."""

from functools import cache
from typing import Any

import numpy as np
from scipy.special import bdtr, bdtrc, bdtri, gammaln, xlog1py, xlogy

# probability that the interval of the unknown rate of gains misses it, see `paired_p_value`
MISSED = 0.001
RATES = 65  # at which the largest p value is sought
FAR = 12.0  # standard deviations beyond which counts of gains are taken as the worst


def binomial_p_value(lost: int, samples: int, bound: float) -> float:
    """Return the exact p value of the hypothesis that at least the share `bound` is lost.

    The probability of at most `lost` of the `samples` at that share (one-sided binomial test).
    """
    return float(bdtr(lost, samples, bound))


@cache
def paired_p_value(lost: int, gained: int, samples: int, bound: float) -> float:
    """Return the p value of the hypothesis that lost less gained is at least the share `bound`.

    `lost` and `gained` of the `samples` became wrong and right. Counts are ordered by `statistic`.
    The p value is the probability of counts that are at least as extreme where the difference of
    the rates is `bound`, for the worst rate of gains in its exact 99.9 % interval, plus the 0.1 %
    that the interval misses. It is valid for any number of samples (Berger and Boos 1994, "P
    Values Maximized Over a Confidence Set for the Nuisance Parameter").
    """
    observed = float(statistic(lost, gained, samples, bound))
    if observed >= 0:
        return 1.0
    highest = 1.0 if gained == samples else float(bdtri(gained, samples, MISSED))
    rates = np.linspace(0.0, min(highest, (1 - bound) / 2), RATES)
    reach = samples * rates[-1] + FAR * (np.sqrt(samples * rates[-1]) + 1)
    gains = np.arange(int(min(samples, reach)) + 1)
    losses = np.arange(gains[-1] + int((samples + 2) * bound) + 2)[:, np.newaxis]
    extreme = statistic(losses, gains, samples, bound) <= observed
    most = np.where(losses + gains <= samples, extreme, False).sum(axis=0) - 1
    worst = max(at_most(most, samples, rate, rate + bound) for rate in rates)
    return min(1.0, worst + MISSED)


def statistic(lost: np.ndarray | int, gained: np.ndarray | int, samples: int, bound: float) -> Any:
    """Return how many standard errors lost less gained is above `bound`, as a share of samples.

    Bonett and Price (2012), "Adjusted Wald confidence interval for a difference of binomial
    proportions based on paired data". Below 0 it grows with `lost`.
    """
    count = samples + 2
    difference = np.subtract(lost, gained)
    # below 1 only where lost and gained are more than there are samples
    spread = np.maximum(np.add(lost, gained) + 2 - difference**2 / count, 1.0)
    return (difference - count * bound) / np.sqrt(spread)


def at_most(most: np.ndarray, samples: int, gain: float, loss: float) -> float:
    """Return the probability of at most `most[gained]` losses, or of more gains than it lists.

    Each of the `samples` is gained at the rate `gain`, lost at the rate `loss`, else unchanged. -1
    stands for no number of losses.
    """
    gained = np.arange(len(most))
    rest = samples - gained
    logs = gammaln(samples + 1) - gammaln(gained + 1) - gammaln(rest + 1)
    chances = np.exp(logs + xlogy(gained, gain) + xlog1py(rest, -gain))
    below = np.where(most < 0, 0.0, bdtr(np.clip(most, 0, rest), rest, loss / (1 - gain)))
    more = bdtrc(gained[-1], samples, gain) if gained[-1] < samples else 0.0
    return float(chances @ below + more)
