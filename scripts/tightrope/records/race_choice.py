"""Which variant a race chooses at a shape."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tightrope.records.race import RaceRecord
from tightrope.records.race_statistics import leader, ratio, winner

Raced = dict[str, Any]


class RaceChoice(NamedTuple):
    """The outcome of a race at one shape.

    `still` are the contenders that were not beaten, `fastest` the first of them by estimate, and
    `close` that one with those that are slower by at most `decision.equal_within`. `variant`, which
    is chosen, has the smallest files of these. A choice is `provisional` where only disturbed
    rounds give it.
    """

    still: list[str]
    fastest: str | None
    close: list[str]
    variant: str | None
    provisional: bool


def race_choice(
    record: RaceRecord, place: int, sizes: Mapping[str, int], *, accept_disturbed: bool
) -> RaceChoice:
    """Return the choice at the shape with index `place`; `sizes` of files are by variant."""
    last = record.heats[-1]["shapes"][place]
    still = still_in(record, last)
    first = winner(last, still) if still else None
    provisional = bool(still and first is None and accept_disturbed)
    if provisional:
        first = leader(last, still, all_rounds=True)
    within = record.decision["equal_within"]
    close = close_to(first, last, still, within, all_rounds=provisional) if first else []
    # which of them is the fastest by estimate differs from run to run; the choice must not
    variant = min(close, key=lambda one: (sizes[one], one), default=None)
    return RaceChoice(still, first, close, variant, provisional)


def close_to(
    first: str, shape: Raced, still: Iterable[str], within: float, *, all_rounds: bool
) -> list[str]:
    """Return `first` and those that are slower by at most the share `within`, by estimate."""
    leads = {one: ratio(shape, first, one, all_rounds=all_rounds) for one in still if one != first}
    return [first, *(one for one, lead in leads.items() if lead and lead.value <= 1 + within)]


def still_in(record: RaceRecord, shape: Raced) -> list[str]:
    """Return the contenders of the last heat that were not beaten and did not fail."""
    gone = set(shape["out"]) | set(record.left_out)
    return [name for name in shape["contenders"] if name not in gone]
