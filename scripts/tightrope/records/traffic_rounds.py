"""Statistics of rounds under traffic, in which paddings alternate, by their `name`."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.statistics import Interval, speedup

# scenarios that are measured in rounds; fewest rounds that count for a number
SINGLE_STREAM, OFFLINE = "single_stream", "offline"
FEWEST_ROUNDS = 3
FIXED = "fixed"

# an entry of `tests`, see TrafficRecord
Test = dict[str, Any]


def in_rounds(tests: Iterable[Test], scenario: str) -> dict[int, list[Test]]:
    """Return the tests of a scenario by round."""
    rounds: dict[int, list[Test]] = {}
    for test in tests:
        if test["scenario"] == scenario:
            rounds.setdefault(test["round"], []).append(test)
    return rounds


def counted_rounds(tests: Iterable[Test], scenario: str, *, disturbed: bool = False) -> list[int]:
    """Return the rounds whose tests are all valid, and none of them disturbed by other load.

    With `disturbed` rounds that were disturbed count too.
    """
    return [
        number
        for number, own in in_rounds(tests, scenario).items()
        if all(test["valid"] for test in own)
        and (disturbed or max(test["foreign_cores"] for test in own) <= MAX_FOREIGN_CORES)
    ]


def counted_tests(
    tests: Sequence[Test], scenario: str, name: str, *, disturbed: bool = False
) -> list[Test]:
    """Return the tests of a name in the rounds that count, empty if these are too few.

    With `disturbed` disturbed rounds count if the others are too few.
    """
    counted = counted_rounds(tests, scenario)
    if len(counted) < FEWEST_ROUNDS and disturbed:
        counted = counted_rounds(tests, scenario, disturbed=True)
    if len(counted) < FEWEST_ROUNDS:
        return []
    return [
        test
        for number, own in in_rounds(tests, scenario).items()
        for test in own
        if number in counted and test["name"] == name
    ]


def median_of(tests: Sequence[Test], figure: str) -> float | None:
    """Return the median of a figure over tests, None without any."""
    return statistics.median(test[figure] for test in tests) if tests else None


def gain_over_fixed(
    tests: Sequence[Test], padding: str, *, disturbed: bool = False
) -> Interval | None:
    """Return how many times the samples per second of padding `fixed` another padding has.

    From the ratio of each round, see `statistics.speedup`; the two share one loaded engine. None
    without enough rounds of both.
    """
    own, fixed = (
        counted_tests(tests, OFFLINE, name, disturbed=disturbed) for name in (padding, FIXED)
    )
    if not own or not fixed:
        return None
    seconds = [[[1 / test["samples_per_s"]] for test in one] for one in (own, fixed)]
    return speedup(*seconds, loads=1)


def gain_of_padding(tests: Sequence[Test], padding: str) -> float | None:
    """Return the gain over `fixed` that padding alone explains, None if it was not measured.

    Tokens with padding that a sample takes with `fixed`, over those that it takes with `padding`:
    the gain of an engine whose time is proportional to the tokens.
    """
    own, fixed = (tokens_of(tests, name) for name in (padding, FIXED))
    return fixed.per_sample / own.per_sample if own and fixed else None


class Tokens(NamedTuple):
    """Tokens of samples, and those that padding added."""

    samples: int
    real: int
    added: int

    @property
    def per_sample(self) -> float:
        """Return the mean tokens of a sample with padding."""
        return (self.real + self.added) / self.samples

    @property
    def padding_share(self) -> float:
        """Return the share of padding in all tokens."""
        return self.added / (self.real + self.added)


def tokens_of(tests: Iterable[Test], padding: str) -> Tokens | None:
    """Return the tokens of all offline tests of a padding; None without any, and for images."""
    own = [
        test
        for test in tests
        if (test["scenario"], test["name"]) == (OFFLINE, padding) and "tokens" in test
    ]
    counts = ("samples", "tokens", "padded_tokens")
    return Tokens(*(sum(test[name] for test in own) for name in counts)) if own else None
