"""Races of real processes whose times are planted, and of made-up blocks at one shape."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from busy import wait
from latency_records import PLAN as SHORT_PLAN
from played_engines import Played, asked, dies, fails, nowhere, raises
from raced import SHAPE
from tightrope.decide.finalists import Finalists
from tightrope.machine.interference import Block
from tightrope.measure.race_rounds import FEWEST_OF_LOAD, Race, RaceAtShape
from tightrope.records.race import FEWEST_TO_CHOOSE, NONE_FASTER, Elimination, RacedShape, ratio
from tiny_model import LIMITS

PLAN = {**SHORT_PLAN, "pairs": 8, "loads": 2, "min_seconds": 0.08, "min_calls": 16}
QUICK, SLOW, THIRD, INT8 = "quick", "slow", "third", "int8"
EQUAL = {QUICK: 0.002, SLOW: 0.002}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def raced(journal: Path) -> Callable[..., Race]:
    """Race engines of these seconds per call at one shape for each of these finalists.

    Without finalists all contend at one shape. With `seconds=0` each load has its fewest rounds.
    """

    def raced(times, *finalists, seconds=600.0, within=0.1, played=None, quiet_seconds=0.0) -> Race:
        chosen = finalists or (Finalists(list(times), []),)
        shapes = [(RacedShape(**SHAPE.sizes), one) for one in chosen]
        races = [RaceAtShape(place, *one, within, PLAN, 1) for place, one in enumerate(shapes)]
        own = {name: {"inputs": len(chosen), **(played or {}).get(name, {})} for name in times}
        engines = {name: Played(journal, name, one, **own[name]) for name, one in times.items()}
        quiet: dict[str, Any] = {"limits": LIMITS, "machine": nowhere(quiet_seconds)}
        race = Race(engines, races, PLAN, seconds=seconds, **quiet)
        race.run()
        return race

    return raced


def loaded(journal: Path) -> list[str]:
    return [one.name for one in asked(journal, "load")]


def test_who_is_slower_drops_out_and_is_not_timed_any_more(raced: Any, journal: Path) -> None:
    (found,) = raced({THIRD: 0.004, QUICK: 0.002, SLOW: 0.003}).races
    assert (found.contenders(), found.shape.stop) == ([QUICK], "one left")
    assert set(found.shape.out) == {THIRD, SLOW}
    # the first load decides, so there is no other
    assert (set(found.shape.loads), loaded(journal)) == ({0}, [THIRD, QUICK, SLOW])
    (found,) = raced({THIRD: 0.006, QUICK: 0.002, SLOW: 0.002}, within=1e-6, seconds=0).races
    last = found.shape.out[THIRD].round
    assert found.shape.out[THIRD].by in (QUICK, SLOW)
    assert last < len(found.shape.loads)
    assert [one is None for one in found.shape.blocks_s[THIRD]] == [n >= last for n in range(12)]


def test_a_load_is_a_process_of_each_and_a_round_a_block_of_each_in_any_order(raced, journal):
    (found,) = raced({**EQUAL, THIRD: 0.002}, seconds=0, within=1e-9).races
    assert loaded(journal) == [QUICK, SLOW, THIRD, THIRD, SLOW, QUICK]
    assert len({one.process for one in asked(journal)}) == 6
    assert found.shape.loads == [0] * FEWEST_OF_LOAD + [1] * FEWEST_OF_LOAD
    assert found.shape.stop == "time limit"
    names = [one.name for one in asked(journal, "block")]
    rounds = [tuple(names[place : place + 3]) for place in range(0, len(names), 3)]
    assert {frozenset(one) for one in rounds} == {frozenset((QUICK, SLOW, THIRD))}
    assert len(set(rounds)) > 2
    assert len({first for first, *_ in rounds}) > 1


def test_its_seconds_bound_it_and_time_that_other_load_took_comes_on_top(raced: Any) -> None:
    began = time.monotonic()
    (found,) = raced(EQUAL, seconds=0.15, within=1e-9).races
    assert time.monotonic() - began >= 0.15
    assert (found.shape.stop, set(found.shape.loads)) == ("time limit", {0, 1})
    began = time.monotonic()
    # it uses ever less, as if other programs used more
    disturbed = {QUICK: {"used_s": -1e6}}
    race = raced(EQUAL, seconds=0.1, within=1e-9, quiet_seconds=0.3, played=disturbed)
    given = 0.3 - race.machine.left_s
    assert given > 0
    assert time.monotonic() - began >= 0.1 + given


def test_each_shape_has_a_race_of_its_own_and_a_pair_runs_until_it_is_decided(raced, journal):
    shapes = Finalists([QUICK, SLOW], []), Finalists([SLOW, THIRD], [])
    races = raced({**EQUAL, THIRD: 0.002}, *shapes, seconds=0, within=1e-9).races
    assert [set(one.shape.blocks_s) for one in races] == [{QUICK, SLOW}, {SLOW, THIRD}]
    assert [len(one.shape.loads) for one in races] == [2 * FEWEST_OF_LOAD] * 2
    assert len(loaded(journal)) == 6
    # both are far behind the only contender, and one is three times as fast as the other
    finalists = Finalists([THIRD], [(INT8, QUICK)])
    (found,) = raced({THIRD: 0.001, INT8: 0.003, QUICK: 0.009}, finalists).races
    assert (found.contenders(), found.shape.out, found.shape.stop) == ([THIRD], {}, "one left")
    assert ratio(found.shape, INT8, QUICK).low > 2


@pytest.mark.parametrize("request_", ["load", "warm_up", "block", "cpu_seconds"])
def test_one_that_fails_is_out_and_the_others_go_on(raced, journal, request_) -> None:
    """Also out of turn, as one that the kernel kills for want of memory."""
    early = request_ in ("load", "warm_up")
    failing = {"before": fails(request_, 0, raises) if early else fails(request_, 2, dies)}
    times = {QUICK: 0.002, THIRD: 0.002, SLOW: 0.002}
    race = raced(times, played={THIRD: failing}, seconds=0, within=1e-9)
    (found,) = race.races
    assert list(race.died) == [THIRD]
    reason = "RuntimeError: no such operator" if early else "killed by SIGKILL"
    assert race.died[THIRD].startswith(reason)
    assert found.contenders() == [QUICK, SLOW]
    assert found.shape.loads == [0] * FEWEST_OF_LOAD + [1] * FEWEST_OF_LOAD
    assert None not in (*found.shape.blocks_s[QUICK], *found.shape.blocks_s[SLOW])
    assert loaded(journal).count(THIRD) == 1


def test_where_all_but_one_fail_the_last_one_is_left_at_all_shapes(raced: Any) -> None:
    each = {SLOW: fails("block", 1, dies), THIRD: fails("block", 2, raises)}
    failing = {name: {"before": before} for name, before in each.items()}
    every = Finalists([QUICK, SLOW, THIRD], [])
    race = raced({**EQUAL, THIRD: 0.002}, every, every, played=failing)
    assert set(race.died) == {SLOW, THIRD}
    assert [one.contenders() for one in race.races] == [[QUICK], [QUICK]]
    assert (race.races[0].shape.stop, race.races[1].shape.loads) == ("one left", [])


def test_what_a_dead_one_had_used_is_not_taken_for_other_programs(raced: Any) -> None:
    """Their use is what the engines and the idle time leave: it must not rise by its end."""

    def before(load: int, request: str, count: int) -> None:
        wait(0.5 if request == "load" else 0.0)
        fails("block", 3, raises)(load, request, count)

    times, played = {QUICK: 0.002, THIRD: 0.002, SLOW: 0.002}, {"used_s": None, "before": before}
    race = raced(times, played={THIRD: played}, seconds=0, within=1e-9)
    assert list(race.died) == [THIRD]
    assert set(race.races[0].shape.foreign_cores) == {0.0}


def test_one_that_beats_the_others_and_then_dies_leaves_them_to_go_on(raced: Any) -> None:
    """It dies with the second load, for which the one that it beat was not loaded again."""

    def before(load: int, request: str, count: int) -> None:
        if load > 2 and request == "block":
            dies()

    times, dying = {THIRD: 0.001, QUICK: 0.001, SLOW: 0.003}, {THIRD: {"before": before}}
    race = raced(times, played=dying, seconds=0, within=1e-9)
    (found,) = race.races
    assert (list(race.died), found.contenders()) == ([THIRD], [QUICK])
    assert found.shape.out[SLOW].by == QUICK


# rounds of made-up blocks
def block(seconds: float, waited_s: float = 0.0) -> Block:
    """A block of five calls."""
    counted = {"waited_s": waited_s, "stolen_s": 0.0, "preempted": 0}
    return Block(samples_s=[seconds] * 5, seconds=5 * seconds, **counted)


def race_of(*names: str, within: float = 0.02, foreign_cores: float = 0.0) -> RaceAtShape:
    shape = RacedShape(**SHAPE.sizes, foreign_cores=[foreign_cores])
    return RaceAtShape(0, shape, Finalists(list(names), []), within, PLAN, 1)


def more(race: RaceAtShape, rounds: int, times: dict[str, float], load: int = 0) -> None:
    race.begin(load, 0.0)
    for _ in range(rounds):
        race.keep({name: block(one) for name, one in times.items()}, window=0)


def after(rounds: int, *seconds: float, within: float = 0.02, loads: int = 2) -> RaceAtShape:
    """The race after so many rounds, looked at after each; loads take turns."""
    times = dict(zip((QUICK, SLOW, THIRD), seconds, strict=False))
    race = race_of(*times, within=within)
    for number in range(rounds):
        if race.shape.stop is None:
            more(race, 1, times, number % loads)
            race.look()
    return race


def test_a_race_ends_without_a_loser_only_when_it_has_the_rounds_and_loads_to_choose() -> None:
    for slow, stop in ((0.010, "equal"), (0.010108, NONE_FASTER)):
        assert after(FEWEST_TO_CHOOSE - 1, 0.010, slow).shape.stop is None
        assert after(4 * FEWEST_TO_CHOOSE, 0.010, slow).shape.stop == stop
    race = after(FEWEST_TO_CHOOSE, 0.010, 0.010, loads=1)
    assert (race.shape.stop, race.other_load) == (None, True)
    assert not after(FEWEST_TO_CHOOSE - 1, 0.010, 0.010, loads=1).other_load
    assert after(4 * FEWEST_TO_CHOOSE, 0.010, 0.010, loads=1).shape.stop is None


def test_rounds_since_the_last_look_count_when_time_is_up() -> None:
    race, looks = race_of(QUICK, SLOW, within=1e-9), []
    for rounds in (5, 4, 4):
        more(race, rounds, {QUICK: 0.010, SLOW: 0.010})
        race.look()
        looks.append(race.looks)
    assert (looks, race.shape.out) == ([0, 1, 1], {})
    more(race, 60, {QUICK: 0.010, SLOW: 0.012})
    race.finish()
    assert (race.looks, race.shape.out) == (2, {SLOW: Elimination(round=73, by=QUICK)})
    assert race.shape.stop == "one left"
    undecided = after(5, 0.010, 0.010, within=1e-9)
    undecided.finish()
    assert (undecided.shape.stop, undecided.contenders()) == ("time limit", [QUICK, SLOW])
    # two that shared too few undisturbed rounds with one another are not told apart
    race, waited = race_of(SLOW, QUICK, THIRD, foreign_cores=1.0), block(0.010, waited_s=1.0)
    for number in range(2 * FEWEST_TO_CHOOSE + 4):
        quick, other = (waited, block(0.0101)) if number % 2 else (block(0.0099), waited)
        race.keep({SLOW: block(0.010), QUICK: quick, THIRD: other}, window=0)
    race.next_look = len(race.shape.loads)
    race.look()
    assert race.shape.stop is None


def test_who_is_surely_slower_is_out_until_the_one_that_beat_it_dies() -> None:
    race = after(6, 0.010, 0.012, 0.013)
    assert (race.shape.stop, race.contenders()) == ("one left", [QUICK])
    assert race.shape.out == {name: Elimination(round=6, by=QUICK) for name in (SLOW, THIRD)}
    race.bury(QUICK)
    assert (race.contenders(), race.shape.stop) == ([SLOW, THIRD], None)
    race.finish()
    assert (race.contenders(), race.shape.stop) == ([SLOW], "one left")
