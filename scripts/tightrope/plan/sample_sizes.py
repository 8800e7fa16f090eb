"""How many examples it takes to show that accuracy is kept."""

from tightrope.statistics import accuracy_verdict, paired_difference

# the largest number of examples that is suggested
MOST = 100_000


def can_tell(samples: int, budget: float) -> bool:
    """Return whether `samples` examples without a change prove that the budget is kept.

    `budget` is the fraction by which accuracy may fall.
    """
    return accuracy_verdict(paired_difference(0, 0, samples), budget) == "kept"


def enough_samples(samples: int, budget: float) -> int | None:
    """Return the smallest number from `samples` on that can tell, None if above MOST."""
    return next((count for count in range(samples, MOST) if can_tell(count, budget)), None)
