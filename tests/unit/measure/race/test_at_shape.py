"""Rounds of made-up blocks: what a race at one shape makes of them."""

import random
from collections.abc import Iterable
from typing import Any

import pytest
from tightrope.measure.race.at_shape import RaceAtShape
from tightrope.records.finalists import Finalists
from tightrope.records.race_statistics import FEWEST_TO_CHOOSE, NONE_FASTER

QUICK, SLOW, THIRD = "cpu-onnxruntime-fp32", "cpu-openvino-fp32", "cpu-pytorch-fp32"


def block(seconds: float, waited_s: float = 0.0) -> dict[str, Any]:
    """A block of five calls."""
    counted = {"waited_s": waited_s, "stolen_s": 0.0, "preempted": 0}
    return {"samples_s": [seconds] * 5, "seconds": 5 * seconds, **counted}


def new(within: float = 0.02) -> RaceAtShape:
    race = RaceAtShape(0, Finalists([QUICK, SLOW, THIRD], []), within)
    race.foreign_cores.append(0.0)
    return race


def run(
    race: RaceAtShape, rounds: int, *seconds: float, loads: int = 1, looks: bool = False
) -> RaceAtShape:
    """So many rounds of the first of three engines, whose calls take so long; loads take turns."""
    if len(seconds) < 3:
        race.finalists = Finalists([QUICK, SLOW], [])
    for number in range(rounds):
        blocks = dict(zip((QUICK, SLOW, THIRD), map(block, seconds), strict=False))
        if race.stop is None:
            race.keep(blocks, load=number % loads, window=0, threads=1)
            if looks:
                race.look()
    return race


def after(rounds: int, *seconds: float, within: float = 0.02, loads: int = 2) -> RaceAtShape:
    """A race that looks after each of so many rounds."""
    return run(new(within), rounds, *seconds, loads=loads, looks=True)


@pytest.mark.parametrize(
    ("slow", "within", "stop"), [(0.010, 0.02, "equal"), (0.010108, 0.02, NONE_FASTER)]
)
def test_a_race_ends_without_a_loser_only_when_it_has_the_rounds_to_choose(
    slow: float, within: float, stop: str
) -> None:
    assert after(FEWEST_TO_CHOOSE - 1, 0.010, slow, within=within).stop is None
    assert after(4 * FEWEST_TO_CHOOSE, 0.010, slow, within=within).stop == stop


def test_one_load_is_not_enough_for_a_race_to_end_without_a_loser() -> None:
    race = after(FEWEST_TO_CHOOSE, 0.010, 0.010, loads=1)
    assert (race.stop, race.other_load) == (None, True)
    assert not after(FEWEST_TO_CHOOSE - 1, 0.010, 0.010, loads=1).other_load
    assert after(4 * FEWEST_TO_CHOOSE, 0.010, 0.010, loads=1).stop is None


def test_it_ends_when_none_can_be_faster_than_the_one_in_front() -> None:
    """The other one is between one percent faster and some percent slower."""
    race, draw = new(0.03), random.Random(0)
    for _ in range(24):
        run(race, 1, 0.010, 0.0101 * (1 + draw.choice([-0.03, 0.0, 0.06])))
    race.next_look = len(race.loads)
    race.look()
    assert (race.stop, race.contenders()) == (NONE_FASTER, [QUICK, SLOW])


def test_who_is_surely_slower_is_out_at_the_first_look() -> None:
    race = after(6, 0.010, 0.015)
    assert (race.stop, race.contenders()) == ("one left", [QUICK])
    assert race.out == {SLOW: {"round": 6, "by": QUICK}}


def looks_of(race: RaceAtShape, rounds: Iterable[int]) -> list[int]:
    """How many looks there were after more and more rounds of equal engines."""
    found = []
    for more in rounds:
        run(race, more, 0.010, 0.010)
        race.look()
        found.append(race.looks)
    return found


def test_rounds_since_the_last_look_count_when_time_is_up() -> None:
    race = new(1e-9)
    assert looks_of(race, [5, 4, 4]) == [0, 1, 1]
    run(race, 60, 0.010, 0.012)
    race.finish()
    assert (race.looks, race.out) == (2, {SLOW: {"round": 73, "by": QUICK}})
    assert race.stop == "one left"
    undecided = run(new(1e-9), 5, 0.010, 0.010)
    undecided.finish()
    assert (undecided.stop, undecided.contenders()) == ("time limit", [QUICK, SLOW])


def test_who_was_beaten_by_one_that_dies_is_in_again() -> None:
    race = after(8, 0.010, 0.012, 0.013)
    assert (race.contenders(), race.stop) == ([QUICK], "one left")
    race.bury(QUICK)
    assert (race.contenders(), race.stop) == ([SLOW, THIRD], None)
    race = run(new(), 8, 0.010, 0.012, 0.013)
    race.look()
    race.bury(QUICK)
    race.finish()
    assert (race.contenders(), race.stop) == ([SLOW], "one left")


def test_two_that_shared_too_few_undisturbed_rounds_are_not_told_apart() -> None:
    """Each has enough of them with the first, but not the two with one another."""
    race = RaceAtShape(0, Finalists([SLOW, QUICK, THIRD], []), 0.02)
    race.foreign_cores.append(1.0)
    waited = block(0.010, waited_s=1.0)
    for number in range(2 * FEWEST_TO_CHOOSE + 4):
        quick, other = (waited, block(0.0101)) if number % 2 else (block(0.0099), waited)
        blocks = {SLOW: block(0.010), QUICK: quick, THIRD: other}
        race.keep(blocks, load=0, window=0, threads=1)
    race.next_look = len(race.loads)
    race.look()
    assert race.stop is None
