"""The command line of a comparison: bounds such as `slower:3%`, and errors of one line."""

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple, NoReturn, get_args

from tightrope.compare.compare import Comparison
from tightrope.compare.formats import Quoted, Words, change_words, points_words, shape_words
from tightrope.compare.speed import SAME_RECORD, SpeedChange
from tightrope.errors import TightropeError, nearest

What = Literal["slower", "accuracy", "gone"]
USAGE = "give slower:3%, accuracy:0.5 or gone"
REFUSED = 2


class Bound(NamedTuple):
    """What may not happen; `limit` is a share of the time, or a fraction of the accuracy."""

    what: What
    limit: float


def parse_bound(text: str) -> Bound:
    """Return the bound that a word of the command line names; raise TightropeError."""
    what, colon, number = text.partition(":")
    if what not in get_args(What):
        raise TightropeError(
            f"--fail-on {text}: no such bound{nearest(what, [*get_args(What)])}; {USAGE}"
        )
    if what == "gone":
        if colon:
            raise TightropeError(f"--fail-on {text}: gone has no limit; {USAGE}")
        return Bound("gone", 0.0)
    try:
        limit = float(number.removesuffix("%")) / 100
    except ValueError:
        limit = math.nan
    if not 0 <= limit < math.inf or (what == "accuracy" and number.endswith("%")):
        raise TightropeError(f"--fail-on {text}: no limit; {USAGE}")
    return Bound("slower" if what == "slower" else "accuracy", limit)


def broken(comparison: Comparison, bounds: Iterable[Bound]) -> list[Words]:
    """Return a line for each variant that breaks a bound.

    Raises TightropeError where there is nothing by which a bound could be judged.
    """
    kinds = {"slower": too_slow, "accuracy": too_wrong, "gone": gone}
    return [line for bound in bounds for line in kinds[bound.what](comparison, bound.limit)]


def too_slow(comparison: Comparison, limit: float) -> Iterator[Words]:
    """Yield the rows that take more time, by more than the limit."""
    judged = [one for one in comparison.speed if one.time]
    if not judged and all(one.reason != SAME_RECORD for one in comparison.speed):
        reasons = sorted({one.reason or "" for one in comparison.speed}) or ["no common shape"]
        raise TightropeError(f"--fail-on slower: no time can be judged: {'; '.join(reasons)}")
    for one in judged:
        if one.verdict == "slower" and one.time and one.time.value - 1 > limit:
            name = Quoted(one.row.model), " ", Quoted(one.row.variant)
            slower = f" is slower: {change_words(one.time)}; allowed are {limit:.1%}"
            yield Words(*name, f" at {shape_words(one.row.shape)}", slower)


def too_wrong(comparison: Comparison, limit: float) -> Iterator[Words]:
    """Yield the variants that lost accuracy, by more than the limit."""
    judged = [one for one in comparison.accuracy if one.delta]
    if not judged:
        raise TightropeError("--fail-on accuracy: no accuracy is in both reports")
    for one in judged:
        if one.verdict == "worse" and one.delta and -one.delta.value > limit:
            lost = f" lost accuracy: {points_words(one.delta)} points; allowed are {100 * limit:g}"
            yield Words(Quoted(one.key.model), " ", Quoted(one.key.variant), lost)


def gone(comparison: Comparison, limit: float) -> Iterator[Words]:
    """Yield the variants that had a result and have none."""
    for key, reason in comparison.gone:
        yield Words(Quoted(key.model), " ", Quoted(key.variant), " is gone: ", Quoted(reason))


def is_open(change: SpeedChange, bounds: Iterable[Bound]) -> bool:
    """Return whether a row is beyond a bound by estimate, and not beyond the noise."""
    limits = [one.limit for one in bounds if one.what == "slower"]
    over = change.time is not None and any(change.time.value - 1 > limit for limit in limits)
    return over and change.verdict == "same"


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line, as all others are."""

    def error(self, message: str) -> NoReturn:
        """Raise TightropeError."""
        raise TightropeError(f"{message}; --help says more")


def run(main: Callable[[list[str]], int]) -> NoReturn:
    """Exit with what `main` returns for the words of the command line, or REFUSED."""
    try:
        sys.exit(main(sys.argv[1:]))
    except TightropeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(REFUSED)
