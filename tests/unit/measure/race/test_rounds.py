"""Races of real child processes whose engines keep a processor busy for a known time a call."""

import itertools
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from busy import PROCESSORS, busy_child, needs_quiet, wait
from disturbed import machine
from tightrope.jobs.child import Limits
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.measure.race.at_shape import FEWEST_OF_LOAD, RaceAtShape
from tightrope.measure.race.rounds import Race
from tightrope.measure.timed_engine import TimedEngine
from tightrope.records.finalists import Finalists
from tightrope.records.race_statistics import NONE_FASTER, leader, ratio
from tiny_model import LIMITS

PLAN = {
    "pairs": 8,
    "loads": 2,
    "min_seconds": 0.08,
    "min_calls": 16,
    "width": 1e-9,
    "comparison_seconds": 0.0,
    "calls": None,
    "warmup_seconds": 0.2,
    "warmup_calls": 2,
    "max_seconds": 30.0,
}
ONE = PROCESSORS[-1]
QUICK, SLOW, THIRD = "cpu-onnxruntime-fp32", "cpu-openvino-fp32", "cpu-pytorch-fp32"
INT8 = "cpu-onnxruntime-int8-minmax-64"
Run = Callable[[Any], None]
Load = Callable[[], Run]


class Raced:
    """Engines on one processor by their variant, the race of them, and what it left behind."""

    def __init__(self, journal: Path, **loads: Load) -> None:
        self.journal = journal
        journal.touch()
        self.loads = loads

    def engine(self, name: str, load: Load, inputs: int) -> TimedEngine:
        def loader() -> Any:
            with self.journal.open("a") as file:
                file.write(json.dumps({"name": name, "process": os.getpid()}) + "\n")
            return load(), {}

        return TimedEngine(loader, [None] * inputs, [ONE])

    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.journal.read_text().splitlines()]

    def run(
        self,
        *finalists: Finalists,
        seconds: float = 20.0,
        within: float = 0.1,
        limits: Limits = LIMITS,
        quiet_seconds: float = 0.0,
        **changes: Any,
    ) -> Race:
        """The race at one shape for each of these finalists; without any all contend at one."""
        chosen = finalists or (Finalists(list(self.loads), []),)
        races = [RaceAtShape(place, one, within) for place, one in enumerate(chosen)]
        engines = {name: self.engine(name, load, len(chosen)) for name, load in self.loads.items()}
        plan = {**PLAN, **changes}
        options = {"seconds": seconds, "threads": 1, "limits": limits}
        race = Race(engines, races, plan, machine=machine(quiet_seconds), **options)
        race.run()
        return race


def takes(seconds: float) -> Load:
    return lambda: lambda _: wait(seconds)


def after(calls: int, then: Callable[[], Any], seconds: float = 0.002) -> Load:
    """An engine in which `then` happens before one of its calls."""
    count = itertools.count()
    return lambda: lambda _: then() if next(count) == calls else wait(seconds)


def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def raises() -> None:
    raise RuntimeError("no such operator")


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def test_who_is_slower_drops_out_and_the_fastest_is_left(journal: Path) -> None:
    def holds() -> bool:
        race = Raced(journal, **{THIRD: takes(0.004), QUICK: takes(0.002), SLOW: takes(0.003)})
        (found,) = race.run().races
        assert set(found.out) <= {THIRD, SLOW}
        return found.contenders() == [QUICK] and found.stop == "one left"

    needs_quiet(holds)


def test_who_is_out_is_not_timed_any_more(journal: Path) -> None:
    def holds() -> bool:
        engines = {THIRD: takes(0.006), QUICK: takes(0.002), SLOW: takes(0.002)}
        race = Raced(journal, **engines).run(within=1e-6, seconds=8.0)
        (found,) = race.races
        if THIRD not in found.out:
            return False
        last = found.out[THIRD]["round"]
        assert last < len(found.loads)
        assert set(found.blocks[THIRD][last:]) == {None}
        assert None not in found.blocks[THIRD][:last]
        assert found.out[THIRD]["by"] in (QUICK, SLOW)
        return True

    needs_quiet(holds)


def test_equal_engines_are_found_to_be_equal(journal: Path) -> None:
    def holds() -> bool:
        found = Raced(journal, **{QUICK: takes(0.002), SLOW: takes(0.002)}).run(within=0.1).races[0]
        return found.stop == "equal" and found.contenders() == [QUICK, SLOW]

    needs_quiet(holds)


def test_each_round_has_a_block_of_each_in_an_order_of_its_own(
    journal: Path, tmp_path: Path
) -> None:
    """Each engine writes down when it was called first in a block."""
    calls = tmp_path / "calls"

    def noted(name: str) -> Load:
        def call(_: Any) -> None:
            with calls.open("a") as file:
                file.write(name)
            wait(0.002)

        return lambda: call

    names = {QUICK: "a", SLOW: "b", THIRD: "c"}
    engines = {name: noted(letter) for name, letter in names.items()}
    (found,) = Raced(journal, **engines).run(seconds=0.1).races
    turns = [letter for letter, _ in itertools.groupby(calls.read_text())]
    text = "".join(turns)
    assert len({text[i : i + 2] for i in range(len(text) - 1)}) == 6, "any may follow any"
    draw = random.Random(0)
    expected = [draw.sample(list(names), 3) for _ in found.loads]
    assert len({tuple(order) for order in expected}) > 2
    assert all(len(blocks) == len(found.loads) for blocks in found.blocks.values())


def test_both_loads_are_processes_of_their_own_the_second_in_the_other_order(
    journal: Path,
) -> None:
    raced = Raced(journal, **{QUICK: takes(0.002), SLOW: takes(0.002), THIRD: takes(0.002)})
    (found,) = raced.run(seconds=0.1, within=1e-9).races
    entries = raced.entries()
    assert [entry["name"] for entry in entries] == [QUICK, SLOW, THIRD, THIRD, SLOW, QUICK]
    assert len({entry["process"] for entry in entries} | {os.getpid()}) == 7
    assert found.loads == [0] * FEWEST_OF_LOAD + [1] * FEWEST_OF_LOAD


def test_a_race_that_is_decided_with_the_first_load_starts_no_other(journal: Path) -> None:
    def holds() -> bool:
        raced = Raced(journal, **{QUICK: takes(0.002), SLOW: takes(0.01)})
        (found,) = raced.run().races
        processes = raced.entries()
        journal.write_text("")
        return found.stop == "one left" and len(processes) == 2 and set(found.loads) == {0}

    needs_quiet(holds)


def test_equal_engines_go_on_to_the_second_load_as_soon_as_only_that_can_tell(
    journal: Path,
) -> None:
    def holds() -> bool:
        raced = Raced(journal, **{QUICK: takes(0.002), SLOW: takes(0.002)})
        (found,) = raced.run(within=0.02, seconds=60.0).races
        few = found.loads.count(0) <= 25 and found.loads.count(1) >= FEWEST_OF_LOAD
        return found.stop in ("equal", "none faster") and few

    needs_quiet(holds)


def test_its_seconds_bound_it(journal: Path) -> None:
    began = time.monotonic()
    race = Raced(journal, **{QUICK: takes(0.002), SLOW: takes(0.002)}).run(seconds=3.0, within=1e-9)
    assert 3.0 <= time.monotonic() - began < 9
    assert race.races[0].stop == "time limit"
    assert set(race.races[0].loads) == {0, 1}


def test_each_shape_has_a_race_of_its_own_in_the_same_processes(journal: Path) -> None:
    first, second = Finalists([QUICK, SLOW], []), Finalists([SLOW, THIRD], [])
    raced = Raced(journal, **{QUICK: takes(0.002), SLOW: takes(0.002), THIRD: takes(0.002)})
    one, other = raced.run(first, second, seconds=0.1, within=1e-9).races
    assert (set(one.blocks), set(other.blocks)) == ({QUICK, SLOW}, {SLOW, THIRD})
    assert len(one.loads) == len(other.loads) == 2 * FEWEST_OF_LOAD
    assert len(raced.entries()) == 6


def test_a_pair_that_does_not_contend_runs_until_it_is_decided(journal: Path) -> None:
    """Both are far behind the only contender, and one is three times as fast as the other."""

    def holds() -> bool:
        engines = {THIRD: takes(0.001), INT8: takes(0.003), QUICK: takes(0.009)}
        finalists = Finalists([THIRD], [(INT8, QUICK)])
        (found,) = Raced(journal, **engines).run(finalists).races
        assert found.contenders() == [THIRD]
        assert found.out == {}
        faster = ratio(found.recorded(), INT8, QUICK)
        return found.stop == "one left" and faster is not None and faster.low > 2

    needs_quiet(holds)


def test_of_a_pair_the_contender_goes_on_when_the_other_one_is_out(journal: Path) -> None:
    def holds() -> bool:
        engines = {INT8: takes(0.002), QUICK: takes(0.01), SLOW: takes(0.002)}
        finalists = Finalists([INT8, SLOW], [(INT8, QUICK)])
        (found,) = Raced(journal, **engines).run(finalists, within=1e-9, seconds=1.0).races
        last = found.blocks[QUICK][-1]
        return last is None and None not in (found.blocks[INT8][-1], found.blocks[SLOW][-1])

    needs_quiet(holds)


def test_a_single_finalist_starts_no_process(journal: Path) -> None:
    raced = Raced(journal, **{QUICK: takes(0.002)})
    (found,) = raced.run().races
    assert raced.entries() == []
    assert (found.stop, found.loads, found.contenders()) == ("one left", [], [QUICK])


@pytest.mark.parametrize(
    ("then", "reason"),
    [(dies, "killed by SIGKILL"), (raises, "RuntimeError: no such operator")],
    ids=["dies", "raises"],
)
@pytest.mark.parametrize("calls", [0, 1, 15], ids=["first-call", "warm-up", "block"])
def test_one_that_fails_is_out_with_its_reason_and_the_others_go_on(
    journal: Path, then: Callable[[], None], reason: str, calls: int
) -> None:
    engines = {QUICK: takes(0.002), THIRD: after(calls, then), SLOW: takes(0.002)}
    race = Raced(journal, **engines).run(seconds=0.5, within=1e-9)
    (found,) = race.races
    assert list(race.died) == [THIRD]
    assert race.died[THIRD].startswith(reason)
    assert THIRD not in found.contenders()
    for name in (QUICK, SLOW):
        assert len([one for one in found.blocks[name] if one]) >= FEWEST_OF_LOAD
    assert [entry["name"] for entry in Raced(journal).entries()].count(THIRD) == 1


def test_one_that_cannot_be_loaded_is_out_and_the_others_go_on(journal: Path) -> None:
    engines = {QUICK: takes(0.002), THIRD: raises, SLOW: takes(0.002)}
    race = Raced(journal, **engines).run(seconds=0.1)
    assert race.died == {THIRD: "RuntimeError: no such operator"}
    assert set(race.races[0].blocks[THIRD]) == {None}
    assert len(race.races[0].loads) >= FEWEST_OF_LOAD


def test_one_that_dies_out_of_turn_is_out_and_the_others_go_on(journal: Path) -> None:
    """As one that the kernel kills for want of memory while another is timed."""

    def later() -> Run:
        threading.Timer(0.4, dies).start()
        return lambda _: wait(0.002)

    engines = {QUICK: takes(0.002), THIRD: later, SLOW: takes(0.002)}
    race = Raced(journal, **engines).run(seconds=3.0, within=1e-9)
    assert list(race.died) == [THIRD]
    assert race.died[THIRD].startswith("killed by SIGKILL")
    assert set(race.races[0].loads) == {0, 1}


def test_what_a_dead_one_had_used_is_not_taken_for_other_programs(journal: Path) -> None:
    """It ends in the middle of a window, with seconds of its own in the processors' counts."""

    def worked() -> Run:
        wait(2.0)
        return after(40, dies)()

    engines = {QUICK: takes(0.002), THIRD: worked, SLOW: takes(0.002)}
    race = Raced(journal, **engines).run(seconds=6.0, within=1e-9)
    assert list(race.died) == [THIRD]
    known = [one for one in race.races[0].foreign_cores if one is not None]
    # its two seconds in one short window would be many cores; other programs have one at most
    assert known and max(known) < 1.5


def test_where_all_but_one_fail_the_last_one_is_left(journal: Path) -> None:
    engines = {QUICK: takes(0.002), SLOW: after(12, dies), THIRD: after(14, raises)}
    race = Raced(journal, **engines).run()
    assert set(race.died) == {SLOW, THIRD}
    assert (race.races[0].contenders(), race.races[0].stop) == ([QUICK], "one left")


def test_who_fails_at_one_shape_is_out_at_all(journal: Path) -> None:
    every = Finalists([QUICK, SLOW], [])
    engines = {QUICK: takes(0.002), SLOW: after(12, dies)}
    race = Raced(journal, **engines).run(every, every)
    assert [one.contenders() for one in race.races] == [[QUICK], [QUICK]]
    assert race.races[1].loads == []


def test_rounds_beside_another_program_do_not_count(journal: Path) -> None:
    with busy_child(ONE):
        race = Raced(journal, **{QUICK: takes(0.002), SLOW: takes(0.004)}).run(
            seconds=3.0, min_seconds=0.32
        )
    (found,) = race.races
    shape = found.recorded()
    assert max(filter(None, found.foreign_cores)) > MAX_FOREIGN_CORES
    assert leader(shape, [QUICK, SLOW]) is None
    assert leader(shape, [QUICK, SLOW], all_rounds=True) == QUICK
    assert found.contenders() == [QUICK, SLOW]


def test_time_that_other_load_took_comes_on_top(journal: Path) -> None:
    with busy_child(ONE):
        began = time.monotonic()
        Raced(journal, **{QUICK: takes(0.002), SLOW: takes(0.002)}).run(
            seconds=2.0, quiet_seconds=2.5, within=1e-9
        )
        assert time.monotonic() - began >= 4.0


def kept(race: RaceAtShape, rounds: int, seconds: dict[str, float]) -> None:
    """Keep so many undisturbed rounds of these times."""
    quiet = {"seconds": 0.01, "waited_s": 0.0, "preempted": 0, "stolen_s": 0.0}
    for _ in range(rounds):
        blocks = {name: {**quiet, "samples_s": [one]} for name, one in seconds.items()}
        race.keep(blocks, 0, 0, 1)


def test_rounds_since_the_last_look_count_when_time_is_up() -> None:
    race = RaceAtShape(0, Finalists([QUICK, SLOW], []), 1e-9)
    kept(race, 5, {QUICK: 0.010, SLOW: 0.010})
    race.look()
    assert race.looks == 0
    kept(race, 4, {QUICK: 0.010, SLOW: 0.010})
    race.look()
    assert (race.looks, race.out) == (1, {})
    kept(race, 4, {QUICK: 0.010, SLOW: 0.010})
    race.look()
    assert race.looks == 1
    kept(race, 60, {QUICK: 0.010, SLOW: 0.012})
    race.finish()
    assert (race.looks, race.out) == (2, {SLOW: {"round": 73, "by": QUICK}})
    assert race.stop == "one left"


def test_who_was_beaten_by_one_that_dies_is_in_again() -> None:
    race = RaceAtShape(0, Finalists([QUICK, SLOW, THIRD], []), 0.02)
    kept(race, 8, {QUICK: 0.010, SLOW: 0.012, THIRD: 0.013})
    race.look()
    assert (race.contenders(), race.stop) == ([QUICK], "one left")
    race.bury(QUICK)
    assert (race.contenders(), race.stop) == ([SLOW, THIRD], None)
    race.finish()
    assert (race.contenders(), race.stop) == ([SLOW], "one left")


def test_one_that_beats_the_others_and_then_dies_leaves_them_to_go_on(journal: Path) -> None:
    """It dies with the second load, for which the one that it beat was not loaded again."""

    def once() -> Run:
        return (lambda _: dies()) if journal.read_text().count(THIRD) > 1 else lambda _: wait(0.001)

    engines = {THIRD: once, QUICK: takes(0.001), SLOW: takes(0.003)}
    race = Raced(journal, **engines).run(seconds=4.0, within=1e-9)
    (found,) = race.races
    assert list(race.died) == [THIRD]
    assert set(found.contenders()) <= {QUICK, SLOW}
    assert found.contenders()


def test_it_ends_when_none_can_be_faster_than_the_one_in_front() -> None:
    """The other one is between one percent faster and some percent slower."""
    race = RaceAtShape(0, Finalists([QUICK, SLOW], []), 0.03)
    draw = random.Random(0)
    for _ in range(24):
        kept(race, 1, {QUICK: 0.010, SLOW: 0.0101 * (1 + draw.choice([-0.03, 0.0, 0.06]))})
    race.next_look = len(race.loads)
    race.look()
    assert (race.stop, race.contenders()) == (NONE_FASTER, [QUICK, SLOW])


def test_a_race_in_which_nothing_is_decided_stops_at_the_time_limit() -> None:
    race = RaceAtShape(0, Finalists([QUICK, SLOW], []), 1e-9)
    kept(race, 5, {QUICK: 0.010, SLOW: 0.010})
    race.finish()
    assert (race.stop, race.contenders()) == ("time limit", [QUICK, SLOW])


def test_what_is_recorded_is_plain_json(journal: Path) -> None:
    finalists = Finalists([QUICK, SLOW], [(INT8, QUICK)])
    engines = {QUICK: takes(0.002), SLOW: takes(0.004), INT8: takes(0.002)}
    (found,) = Raced(journal, **engines).run(finalists, seconds=0.1).races
    recorded = found.recorded()
    assert json.loads(json.dumps(recorded)) == recorded
    assert set(recorded["blocks_s"]) == set(recorded["facts"]) == {QUICK, SLOW, INT8}
    assert recorded["seconds"] > 0


def test_it_tells_how_much_of_its_time_is_over(
    journal: Path, told: Callable[[], dict[str, list[int]]]
) -> None:
    raced = Raced(journal, **{QUICK: takes(0.002), SLOW: takes(0.002)})
    raced.run(seconds=3.0, within=1e-9)
    percents = told()["racing"]
    assert percents == sorted(percents)
    assert len(set(percents)) > 10
    assert percents[-1] == 100
