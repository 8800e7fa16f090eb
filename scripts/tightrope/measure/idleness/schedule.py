"""The order of pauses: fewer of long ones, and all lengths spread over the whole time."""

import random
from collections.abc import Iterator, Sequence

# calls after a pause of a second; the number falls with the cube root of the pause
CALLS = 15
FEWEST, MOST = 7, 30


def calls_after(pause_s: float) -> int:
    """Return how many calls follow a pause of this length: 30 of 0.1 s, 15 of 1 s, 7 of 10 s."""
    return max(FEWEST, min(MOST, round(CALLS / pause_s ** (1 / 3))))


def schedule(pauses_s: Sequence[float]) -> Iterator[float]:
    """Yield the pauses in rounds; the lengths of a round are in an order drawn from a fixed seed.

    A longer pause is in fewer of the rounds, at equal distances.
    """
    counts = {pause: calls_after(pause) for pause in pauses_s}
    rounds, order = max(counts.values()), random.Random(0)
    for number in range(rounds):
        due = [
            pause
            for pause, count in counts.items()
            if (number + 1) * count // rounds > number * count // rounds
        ]
        yield from order.sample(due, len(due))
