"""Rounds of made-up blocks: what a race at one shape makes of them."""

from typing import Any

import pytest
from tightrope.measure.race.at_shape import RaceAtShape
from tightrope.records.finalists import Finalists
from tightrope.records.race_statistics import FEWEST_TO_CHOOSE

QUICK, SLOW = "cpu-onnxruntime-fp32", "cpu-openvino-fp32"


def block(seconds: float) -> dict[str, Any]:
    """A block of five calls that nothing disturbed."""
    counted = {"waited_s": 0.0, "stolen_s": 0.0, "preempted": 0}
    return {"samples_s": [seconds] * 5, "seconds": 5 * seconds, **counted}


def after(
    rounds: int, quick: float, slow: float, within: float = 0.02, *, loads: int = 2
) -> RaceAtShape:
    """The race of two after so many rounds, looked at after each; loads take turns."""
    race = RaceAtShape(0, Finalists([QUICK, SLOW], []), within)
    race.foreign_cores.append(0.0)
    for number in range(rounds):
        if race.stop is None:
            blocks = {QUICK: block(quick), SLOW: block(slow)}
            race.keep(blocks, load=number % loads, window=0, threads=1)
            race.look()
    return race


@pytest.mark.parametrize(
    ("slow", "within", "stop"), [(0.010, 0.02, "equal"), (0.010108, 0.02, "none faster")]
)
def test_a_race_ends_without_a_loser_only_when_it_has_the_rounds_to_choose(
    slow: float, within: float, stop: str
) -> None:
    assert after(FEWEST_TO_CHOOSE - 1, 0.010, slow, within).stop is None
    assert after(4 * FEWEST_TO_CHOOSE, 0.010, slow, within).stop == stop


def test_one_load_is_not_enough_for_a_race_to_end_without_a_loser() -> None:
    race = after(FEWEST_TO_CHOOSE, 0.010, 0.010, loads=1)
    assert (race.stop, race.other_load) == (None, True)
    assert not after(FEWEST_TO_CHOOSE - 1, 0.010, 0.010, loads=1).other_load
    assert after(4 * FEWEST_TO_CHOOSE, 0.010, 0.010, loads=1).stop is None


def test_who_is_surely_slower_is_out_at_the_first_look() -> None:
    race = after(6, 0.010, 0.015)
    assert (race.stop, race.contenders()) == ("one left", [QUICK])
    assert race.out == {SLOW: {"round": 6, "by": QUICK}}


def test_the_last_look_counts_the_rounds_since_the_one_before() -> None:
    race = after(8, 0.010, 0.0101)
    assert race.stop is None
    race.finish()
    assert race.stop == "time limit"


def test_two_that_shared_too_few_undisturbed_rounds_are_not_told_apart() -> None:
    """Each has enough of them with the first, but not the two with one another."""
    third = "cpu-pytorch-fp32"
    race = RaceAtShape(0, Finalists([SLOW, QUICK, third], []), 0.02)
    race.foreign_cores.append(1.0)
    waited = {**block(0.010), "waited_s": 1.0}
    for number in range(2 * FEWEST_TO_CHOOSE + 4):
        quick, other = (waited, block(0.0101)) if number % 2 else (block(0.0099), waited)
        blocks = {SLOW: block(0.010), QUICK: quick, third: other}
        race.keep(blocks, load=0, window=0, threads=1)
    race.next_look = len(race.loads)
    race.look()
    assert race.stop is None
