"""Rounds of made-up blocks: what a race at one shape makes of them."""

import random
from typing import Any

import pytest
from tightrope.measure.race_rounds import RaceAtShape
from tightrope.records.finalists import Finalists
from tightrope.records.race_statistics import FEWEST_TO_CHOOSE, NONE_FASTER

QUICK, SLOW, THIRD = "cpu-onnxruntime-fp32", "cpu-openvino-fp32", "cpu-pytorch-fp32"


def block(seconds: float, waited_s: float = 0.0) -> dict[str, Any]:
    """A block of five calls."""
    counted = {"waited_s": waited_s, "stolen_s": 0.0, "preempted": 0}
    return {"samples_s": [seconds] * 5, "seconds": 5 * seconds, **counted}


def race_of(*names: str, within: float = 0.02, foreign_cores: float = 0.0) -> RaceAtShape:
    race = RaceAtShape(0, Finalists(list(names), []), within)
    race.foreign_cores.append(foreign_cores)
    return race


def more(race: RaceAtShape, rounds: int, times: dict[str, float], load: int = 0) -> None:
    for _ in range(rounds):
        blocks = {name: block(one) for name, one in times.items()}
        race.keep(blocks, load=load, window=0, threads=1)


def after(rounds: int, *seconds: float, within: float = 0.02, loads: int = 2) -> RaceAtShape:
    """The race after so many rounds, looked at after each; loads take turns."""
    times = dict(zip((QUICK, SLOW, THIRD), seconds, strict=False))
    race = race_of(*times, within=within)
    for number in range(rounds):
        if race.stop is None:
            more(race, 1, times, number % loads)
            race.look()
    return race


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
    race, draw = race_of(QUICK, SLOW, within=0.03), random.Random(0)
    for _ in range(24):
        wild = 0.0101 * (1 + draw.choice([-0.03, 0.0, 0.06]))
        more(race, 1, {QUICK: 0.010, SLOW: wild})
    race.next_look = len(race.loads)
    race.look()
    assert (race.stop, race.contenders()) == (NONE_FASTER, [QUICK, SLOW])


def test_rounds_since_the_last_look_count_when_time_is_up() -> None:
    race, looks = race_of(QUICK, SLOW, within=1e-9), []
    for rounds in (5, 4, 4):
        more(race, rounds, {QUICK: 0.010, SLOW: 0.010})
        race.look()
        looks.append(race.looks)
    assert (looks, race.out) == ([0, 1, 1], {})
    more(race, 60, {QUICK: 0.010, SLOW: 0.012})
    race.finish()
    assert (race.looks, race.out) == (2, {SLOW: {"round": 73, "by": QUICK}})
    assert race.stop == "one left"
    undecided = after(5, 0.010, 0.010, within=1e-9)
    undecided.finish()
    assert (undecided.stop, undecided.contenders()) == ("time limit", [QUICK, SLOW])


def test_who_is_surely_slower_is_out_until_the_one_that_beat_it_dies() -> None:
    race = after(6, 0.010, 0.012, 0.013)
    assert (race.stop, race.contenders()) == ("one left", [QUICK])
    assert race.out == {name: {"round": 6, "by": QUICK} for name in (SLOW, THIRD)}
    race.bury(QUICK)
    assert (race.contenders(), race.stop) == ([SLOW, THIRD], None)
    race.finish()
    assert (race.contenders(), race.stop) == ([SLOW], "one left")


def test_two_that_shared_too_few_undisturbed_rounds_are_not_told_apart() -> None:
    """Each has enough of them with the first, but not the two with one another."""
    race, waited = race_of(SLOW, QUICK, THIRD, foreign_cores=1.0), block(0.010, waited_s=1.0)
    for number in range(2 * FEWEST_TO_CHOOSE + 4):
        quick, other = (waited, block(0.0101)) if number % 2 else (block(0.0099), waited)
        blocks = {SLOW: block(0.010), QUICK: quick, THIRD: other}
        race.keep(blocks, load=0, window=0, threads=1)
    race.next_look = len(race.loads)
    race.look()
    assert race.stop is None
