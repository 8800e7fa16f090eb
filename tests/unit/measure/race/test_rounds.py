"""Races of real processes whose times are planted."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from busy import wait
from played_engines import Played, asked, dies, fails, nowhere, raises
from tightrope.measure.race_rounds import FEWEST_OF_LOAD, Race, RaceAtShape
from tightrope.records.finalists import Finalists
from tightrope.records.race_statistics import NONE_FASTER, ratio
from tiny_model import LIMITS

PLAN = {
    **{"pairs": 8, "loads": 2, "min_seconds": 0.08, "min_calls": 16, "width": 1e-9, "calls": None},
    **{"comparison_seconds": 0.0, "max_seconds": 30.0},
    **{"warmup_seconds": 0.2, "warmup_calls": 2},
}
QUICK, SLOW, THIRD = "cpu-onnxruntime-fp32", "cpu-openvino-fp32", "cpu-pytorch-fp32"
INT8 = "cpu-onnxruntime-int8-minmax-64"
EQUAL = {QUICK: 0.002, SLOW: 0.002}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def raced(journal: Path) -> Callable[..., Race]:
    """Race engines of these seconds per call at one shape for each of these finalists.

    Without finalists all contend at one shape. With `seconds=0` each load has its fewest rounds.
    """

    def raced(
        times: dict[str, Any],
        *finalists: Finalists,
        seconds: float = 600.0,
        within: float = 0.1,
        played: dict[str, dict[str, Any]] | None = None,
        quiet_seconds: float = 0.0,
    ) -> Race:
        chosen = finalists or (Finalists(list(times), []),)
        races = [RaceAtShape(place, one, within) for place, one in enumerate(chosen)]
        own = {name: {"inputs": len(chosen), **(played or {}).get(name, {})} for name in times}
        engines = {name: Played(journal, name, one, **own[name]) for name, one in times.items()}
        quiet: dict[str, Any] = {"limits": LIMITS, "machine": nowhere(quiet_seconds)}
        race = Race(engines, races, PLAN, seconds=seconds, threads=1, **quiet)
        race.run()
        return race

    return raced


def loaded(journal: Path) -> list[str]:
    return [one.name for one in asked(journal, "load")]


def test_who_is_slower_drops_out_and_is_not_timed_any_more(raced: Any) -> None:
    (found,) = raced({THIRD: 0.004, QUICK: 0.002, SLOW: 0.003}).races
    assert (found.contenders(), found.stop) == ([QUICK], "one left")
    assert set(found.out) == {THIRD, SLOW}
    (found,) = raced({THIRD: 0.006, QUICK: 0.002, SLOW: 0.002}, within=1e-6, seconds=0).races
    last = found.out[THIRD]["round"]
    assert found.out[THIRD]["by"] in (QUICK, SLOW)
    assert last < len(found.loads)
    assert [one is None for one in found.blocks[THIRD]] == [n >= last for n in range(12)]


def test_each_round_has_a_block_of_each_in_an_order_of_its_own(raced: Any, journal: Path) -> None:
    (found,) = raced({**EQUAL, THIRD: 0.002}, seconds=0, within=1e-9).races
    names = [one.name for one in asked(journal, "block")]
    rounds = [tuple(names[place : place + 3]) for place in range(0, len(names), 3)]
    assert len(rounds) == len(found.loads)
    assert {frozenset(one) for one in rounds} == {frozenset((QUICK, SLOW, THIRD))}
    assert len(set(rounds)) > 2
    assert len({first for first, *_ in rounds}) > 1


def test_both_loads_are_processes_of_their_own_the_second_in_the_other_order(
    raced: Any, journal: Path
) -> None:
    (found,) = raced({**EQUAL, THIRD: 0.002}, seconds=0, within=1e-9).races
    assert loaded(journal) == [QUICK, SLOW, THIRD, THIRD, SLOW, QUICK]
    assert len({one.process for one in asked(journal)}) == 6
    assert found.loads == [0] * FEWEST_OF_LOAD + [1] * FEWEST_OF_LOAD
    assert found.stop == "time limit"


def test_a_race_that_is_decided_with_the_first_load_starts_no_other(
    raced: Any, journal: Path
) -> None:
    (found,) = raced({QUICK: 0.002, SLOW: 0.01}).races
    assert (found.stop, set(found.loads)) == ("one left", {0})
    assert loaded(journal) == [QUICK, SLOW]
    (found,) = raced(EQUAL, within=0.1).races
    assert (found.stop, set(found.loads)) == ("equal", {0})


def test_equal_engines_go_on_to_the_second_load_as_soon_as_only_that_can_tell(raced: Any) -> None:
    (found,) = raced(EQUAL, within=0.02).races
    assert found.stop in ("equal", NONE_FASTER)
    assert FEWEST_OF_LOAD <= found.loads.count(0) <= 16
    assert found.loads.count(1) >= FEWEST_OF_LOAD


def test_its_seconds_bound_it_and_time_that_other_load_took_comes_on_top(raced: Any) -> None:
    began = time.monotonic()
    (found,) = raced(EQUAL, seconds=0.3, within=1e-9).races
    assert time.monotonic() - began >= 0.3
    assert (found.stop, set(found.loads)) == ("time limit", {0, 1})
    began = time.monotonic()
    # it uses ever less, as if other programs used more
    disturbed = {QUICK: {"used_s": -1e6}}
    race = raced(EQUAL, seconds=0.2, within=1e-9, quiet_seconds=0.6, played=disturbed)
    assert race.machine.left_s == 0
    assert time.monotonic() - began >= 0.2 + 0.6


def test_each_shape_has_a_race_of_its_own_in_the_same_processes(raced: Any, journal: Path) -> None:
    shapes = Finalists([QUICK, SLOW], []), Finalists([SLOW, THIRD], [])
    one, other = raced({**EQUAL, THIRD: 0.002}, *shapes, seconds=0, within=1e-9).races
    assert (set(one.blocks), set(other.blocks)) == ({QUICK, SLOW}, {SLOW, THIRD})
    assert len(one.loads) == len(other.loads) == 2 * FEWEST_OF_LOAD
    assert len(loaded(journal)) == 6


def test_a_pair_that_does_not_contend_runs_until_it_is_decided(raced: Any) -> None:
    """Both are far behind the only contender, and one is three times as fast as the other."""
    finalists = Finalists([THIRD], [(INT8, QUICK)])
    (found,) = raced({THIRD: 0.001, INT8: 0.003, QUICK: 0.009}, finalists).races
    assert (found.contenders(), found.out, found.stop) == ([THIRD], {}, "one left")
    assert ratio(found.recorded(), INT8, QUICK).low > 2


def test_of_a_pair_the_contender_goes_on_when_the_other_one_is_out(raced: Any) -> None:
    finalists = Finalists([INT8, SLOW], [(INT8, QUICK)])
    times = {INT8: 0.002, QUICK: 0.01, SLOW: 0.002}
    (found,) = raced(times, finalists, within=1e-9, seconds=0).races
    assert found.blocks[QUICK][-1] is None
    assert None not in (found.blocks[INT8][-1], found.blocks[SLOW][-1])


@pytest.mark.parametrize(
    ("request_", "then", "reason"),
    [
        ("load", raises, "RuntimeError: no such operator"),
        ("first_call", dies, "killed by SIGKILL"),
        ("warm_up", raises, "RuntimeError: no such operator"),
        ("block", dies, "killed by SIGKILL"),
        # out of turn, as one that the kernel kills for want of memory
        ("cpu_seconds", dies, "killed by SIGKILL"),
    ],
)
def test_one_that_fails_is_out_with_its_reason_and_the_others_go_on(
    raced: Any, journal: Path, request_: str, then: Callable[[], None], reason: str
) -> None:
    number = 2 if request_ in ("block", "cpu_seconds") else 0
    failing = {THIRD: {"before": fails(request_, number, then)}}
    race = raced({QUICK: 0.002, THIRD: 0.002, SLOW: 0.002}, played=failing, seconds=0, within=1e-9)
    (found,) = race.races
    assert list(race.died) == [THIRD]
    assert race.died[THIRD].startswith(reason)
    assert found.contenders() == [QUICK, SLOW]
    assert found.loads == [0] * FEWEST_OF_LOAD + [1] * FEWEST_OF_LOAD
    for name in (QUICK, SLOW):
        assert None not in found.blocks[name]
    assert loaded(journal).count(THIRD) == 1


def test_where_all_but_one_fail_the_last_one_is_left_at_all_shapes(raced: Any) -> None:
    failing = {
        SLOW: {"before": fails("block", 1, dies)},
        THIRD: {"before": fails("block", 2, raises)},
    }
    every = Finalists([QUICK, SLOW, THIRD], [])
    race = raced({**EQUAL, THIRD: 0.002}, every, every, played=failing)
    assert set(race.died) == {SLOW, THIRD}
    assert [one.contenders() for one in race.races] == [[QUICK], [QUICK]]
    assert (race.races[0].stop, race.races[1].loads) == ("one left", [])


def test_what_a_dead_one_had_used_is_not_taken_for_other_programs(raced: Any) -> None:
    """Their use is what the engines and the idle time leave: it must not rise by its end."""

    def before(load: int, request: str, count: int) -> None:
        if request == "load":
            wait(0.5)
        fails("block", 3, raises)(load, request, count)

    played = {THIRD: {"used_s": None, "before": before}}
    race = raced({QUICK: 0.002, THIRD: 0.002, SLOW: 0.002}, played=played, seconds=0, within=1e-9)
    assert list(race.died) == [THIRD]
    assert set(race.races[0].foreign_cores) == {0.0}


def test_one_that_beats_the_others_and_then_dies_leaves_them_to_go_on(raced: Any) -> None:
    """It dies with the second load, for which the one that it beat was not loaded again."""

    def before(load: int, request: str, count: int) -> None:
        if load > 2 and request == "block":
            dies()

    dying = {THIRD: {"before": before}}
    times = {THIRD: 0.001, QUICK: 0.001, SLOW: 0.003}
    race = raced(times, played=dying, seconds=0, within=1e-9)
    assert list(race.died) == [THIRD]
    (found,) = race.races
    assert (found.contenders(), found.out[SLOW]["by"]) == ([QUICK], QUICK)


def test_it_tells_how_much_of_its_time_is_over(
    raced: Any, told: Callable[[], dict[str, list[int]]]
) -> None:
    raced(EQUAL, seconds=0.5, within=1e-9)
    percents = told()["racing"]
    assert percents == sorted(percents)
    assert len([one for one, _ in itertools.groupby(percents)]) > 2
    assert percents[-1] == 100
