"""Engines that write down what each of their processes was asked, and compute for a known time."""

import json
import math
import os
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from busy import PROCESSORS, busy_child, needs_quiet, wait
from disturbed import facts, machine
from energy_counter import Metered
from played_streams import Device
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Limits
from tightrope.machine.interference import undisturbed
from tightrope.measure.blocks import block_sizes
from tightrope.measure.comparison import compare_loads, first_half, scaled, second_half
from tightrope.measure.streams import BLOCKS
from tightrope.measure.timed_engine import TimedEngine
from tightrope.statistics import speed_verdict, speedup
from tiny_model import LIMITS

PLAN = {
    "pairs": 8,
    "loads": 2,
    "min_seconds": 0.04,
    "min_calls": 16,
    "width": 1e-9,
    "comparison_seconds": 0.0,
    "calls": None,
    "warmup_seconds": 0.5,
    "warmup_calls": 2,
    "max_seconds": 30.0,
}
OWN, BASELINE = "", "baseline "
Load = Callable[[int], Callable[[Any], None]]


class Engines:
    """An engine and its baseline; `loads[role](n)` gives the `run` of what was loaded as nth."""

    def __init__(self, journal: Path, **loads: Load) -> None:
        self.journal = journal
        journal.touch()
        self.loads = {OWN: loads["own"]} | (
            {BASELINE: loads["baseline"]} if "baseline" in loads else {}
        )

    def loader(self, role: str) -> Any:
        def load() -> Any:
            run = self.loads[role](len(self.entries()))
            entry = {"role": role, "process": os.getpid()}
            with self.journal.open("a") as file:
                file.write(json.dumps(entry) + "\n")
            return run, {"import_s": 1.0 + len(self.entries()), "load_s": 2.0}

        return load

    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.journal.read_text().splitlines()]

    def timed(self, inputs: int = 1) -> dict[str, TimedEngine]:
        processor = [PROCESSORS[-1]]
        return {
            role: TimedEngine(self.loader(role), [None] * inputs, processor) for role in self.loads
        }

    def compare(
        self, inputs: int = 1, limits: Limits = LIMITS, **changes: Any
    ) -> tuple[list[dict[str, Any]], dict[str, float]]:
        return compare_loads(self.timed(inputs), {**PLAN, **changes}, 1, limits, machine())


def always(seconds: float) -> Load:
    return lambda _: lambda _: wait(seconds)


class Deadly(Device):
    """Its process ends when it is asked for streams."""

    def on_streams(self, inputs: Any, count: int) -> Any:
        os._exit(3)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def test_both_are_loaded_twice_each_time_in_a_new_process_and_the_other_order(
    journal: Path,
) -> None:
    engines = Engines(journal, own=always(0.001), baseline=always(0.002))
    shapes, facts = engines.compare(inputs=2)
    entries = engines.entries()
    assert [entry["role"] for entry in entries] == [OWN, BASELINE, BASELINE, OWN]
    assert len({entry["process"] for entry in entries} | {os.getpid()}) == 5
    assert len(shapes) == 2
    assert (facts["import_s"], facts["load_s"]) == (2.0, 2.0), "of the first load"
    assert facts["peak_rss_bytes"] > 1e6


def test_one_load_is_enough_where_it_is_asked_for(journal: Path) -> None:
    engines = Engines(journal, own=always(0.001), baseline=always(0.002))
    ((shape,), _) = engines.compare(loads=1, calls=20)
    assert [entry["role"] for entry in engines.entries()] == [OWN, BASELINE]
    assert len(shape["warmups"]) == 1
    assert len(shape["pairs"]) == PLAN["pairs"]
    assert sum(len(block) for block in shape["blocks_s"]) == 20


def test_one_load_stops_by_the_width_that_was_asked_for(journal: Path) -> None:
    goal = {"width": 0.5, "comparison_seconds": 10.0, "loads": 1}

    def narrow() -> bool:
        engines = Engines(journal, own=always(0.001), baseline=always(0.002))
        ((shape,), _) = engines.compare(**goal)
        return shape["stop"] == "width"

    needs_quiet(narrow)


def test_what_waiting_may_cost_is_for_both_loads_together(journal: Path) -> None:
    engines = Engines(journal, own=always(0.001), baseline=always(0.002))
    one = machine(1.0)
    with busy_child(PROCESSORS[-1]):
        compare_loads(engines.timed(), PLAN, 1, LIMITS, one)
    assert one.left_s == 0
    assert "waiting for a quiet machine" in one.terminal.getvalue()


def test_a_baseline_of_its_own_is_measured_alone_with_two_loads(journal: Path) -> None:
    engines = Engines(journal, own=always(0.001))
    ((shape,), _) = engines.compare(comparison_seconds=20.0)
    assert [entry["role"] for entry in engines.entries()] == [OWN, OWN]
    assert (shape["stop"], shape["baseline_blocks_s"]) == ("minimum", None)
    assert len(undisturbed(shape)) >= PLAN["pairs"]


def test_each_load_has_half_of_the_pairs(journal: Path) -> None:
    """What was loaded before is told by its time: each load has one of its own."""
    milliseconds = {0: 1, 1: 2, 2: 4, 3: 8}

    def load(place: int) -> Callable[[Any], None]:
        return lambda _: wait(1e-3 * milliseconds[place])

    def halves() -> bool:
        journal.write_text("")
        ((shape,), _) = Engines(journal, own=load, baseline=load).compare()
        both = (shape["blocks_s"], (0, 3)), (shape["baseline_blocks_s"], (1, 2))
        return all(counted(blocks) == expected(places) for blocks, places in both)

    def counted(blocks: list[list[float]]) -> list[tuple[int, int]]:
        loaded = [2 ** int(math.log2(1.2e3 * min(block))) for block in blocks]
        return [(value, len(list(same))) for value, same in groupby(loaded)]

    def expected(places: tuple[int, int]) -> list[tuple[int, int]]:
        return [(milliseconds[place], PLAN["pairs"] // 2) for place in places]

    needs_quiet(halves)


def test_what_is_loaded_first_has_no_handicap(journal: Path) -> None:
    """An engine against itself, where the first of two loads makes 10 % slower for good."""

    def load(place: int) -> Callable[[Any], None]:
        return lambda _: wait(0.0011 if place % 2 == 0 else 0.001)

    def verdicts() -> list[str]:
        journal.write_text("")
        ((shape,), _) = Engines(journal, own=load, baseline=load).compare(pairs=20)
        own, theirs = shape["blocks_s"], shape["baseline_blocks_s"]
        parts = (slice(10), slice(10, None), slice(None))
        return [speed_verdict(speedup(own[part], theirs[part])) for part in parts]

    needs_quiet(lambda: verdicts() == ["slower", "faster", "tie"])


def test_it_stops_by_the_width_of_the_interval_over_both_loads(journal: Path) -> None:
    goal = {"width": 0.5, "comparison_seconds": 10.0}

    def narrow() -> bool:
        engines = Engines(journal, own=always(0.001), baseline=always(0.002))
        ((shape,), _) = engines.compare(**goal)
        if shape["stop"] != "width":
            return False
        kept = undisturbed(shape)
        both = (shape[name] for name in ("blocks_s", "baseline_blocks_s"))
        interval = speedup(*([blocks[index] for index in kept] for blocks in both))
        assert (interval.high - interval.low) / interval.value <= 0.5
        assert shape["seconds"] < 10
        return True

    needs_quiet(narrow)


def test_the_time_limit_is_for_both_loads_together(journal: Path) -> None:
    engines = Engines(journal, own=always(0.001), baseline=always(0.002))
    ((shape,), _) = engines.compare(comparison_seconds=1.0)
    assert shape["stop"] == "time limit"
    assert 1.0 <= shape["seconds"] < 3.0


@pytest.mark.parametrize(("calls", "pairs"), [(33, 20), (100, 7), (2, 20), (3, 2)])
def test_a_fixed_protocol_makes_its_calls_with_both_loads_together(
    journal: Path, calls: int, pairs: int
) -> None:
    engines = Engines(journal, own=always(0.0005), baseline=always(0.001))
    ((shape,), _) = engines.compare(calls=calls, warmup_calls=5, pairs=pairs)
    for name in ("blocks_s", "baseline_blocks_s"):
        assert sum(len(block) for block in shape[name]) == calls
        assert len(shape[name]) == len(shape["pairs"]) == min(calls, pairs)
    assert shape["stop"] == "calls"
    assert [warmup["calls"] for warmup in shape["warmups"]] == [5, 5]


@pytest.mark.parametrize(("place", "role"), [(0, OWN), (1, BASELINE), (2, BASELINE), (3, OWN)])
def test_a_load_that_fails_is_named_by_its_role(journal: Path, place: int, role: str) -> None:
    def load(at: int) -> Callable[[Any], None]:
        if at == place:
            raise RuntimeError("no such operator")
        return lambda _: wait(0.001)

    with pytest.raises(WorkFailed) as caught:
        Engines(journal, own=load, baseline=load).compare()
    assert caught.value.reason == f"{role}RuntimeError: no such operator"
    assert caught.value.role == role


def test_what_the_first_load_has_used_counts_towards_max_seconds(journal: Path) -> None:
    engines = Engines(journal, own=always(0.05), baseline=always(0.001))
    with pytest.raises(WorkFailed, match=r"^too slow \(\d+ calls in 1 s\)") as caught:
        engines.compare(min_calls=16, warmup_calls=0, max_seconds=0.7)
    assert len(engines.entries()) == 4, "the first half alone is within the limit"
    assert not caught.value.transient


def test_the_limits_of_the_job_are_for_both_loads_together(journal: Path) -> None:
    def load(place: int) -> Callable[[Any], None]:
        wait(0.9 if place in (0, 2) else 0.0)
        return lambda _: wait(0.001)

    limits = Limits(memory_bytes=8e9, seconds=1.2)
    with pytest.raises(WorkFailed, match="killed after 1 s, the limit of this job") as caught:
        Engines(journal, own=load, baseline=load).compare(limits=limits)
    assert len(journal.read_text().splitlines()) == 2, "the first half alone is within the limit"
    assert (caught.value.role, caught.value.transient) == (BASELINE, True)


@pytest.mark.parametrize("pairs", [2, 5, 20])
def test_the_first_half_has_half_of_the_minima_and_blocks_as_long(pairs: int) -> None:
    plan = {**PLAN, "pairs": pairs, "width": 0.05, "comparison_seconds": 5.0}
    half = first_half(plan)
    assert half["pairs"] == math.ceil(pairs / 2)
    assert half["min_seconds"] / half["pairs"] == pytest.approx(plan["min_seconds"] / pairs)
    assert block_sizes(half)[1] == block_sizes(plan)[1]
    assert half["width"] == pytest.approx(0.05 * math.sqrt(2))
    assert (half["comparison_seconds"], half["max_seconds"]) == (2.5, plan["max_seconds"])


def test_the_second_half_has_no_fewer_pairs_than_the_first() -> None:
    plan = {**PLAN, "pairs": 20}
    assert second_half(plan, facts(0, 10))["pairs"] == 20
    assert second_half(plan, facts(1, 30))["pairs"] == 60
    assert second_half(plan, facts(30, 0))["pairs"] == 20


def test_a_scaled_plan_has_blocks_as_long() -> None:
    more = scaled({**PLAN, "pairs": 20, "min_seconds": 1.0, "min_calls": 50}, 30)
    assert (more["pairs"], more["min_seconds"], more["min_calls"]) == (30, 1.5, 75)


def test_it_tells_how_much_of_its_shapes_and_their_pairs_is_timed(
    journal: Path, told: Callable[[], dict[str, list[int]]]
) -> None:
    engines = Engines(journal, own=always(0.001), baseline=always(0.002))
    engines.compare(inputs=2)
    # two loads of two shapes, each of 4 pairs
    expected = [6.25 * pair for pair in range(17)]
    assert told()["timing"] == pytest.approx([*expected[:-1], 99, 100], abs=1)


def test_within_the_pairs_of_a_minimum_it_tells_the_time_that_is_over(
    journal: Path, told: Callable[[], dict[str, list[int]]]
) -> None:
    engines = Engines(journal, own=always(0.001))
    engines.compare(comparison_seconds=1.0, loads=1, pairs=2, min_seconds=0.01, min_calls=2)
    percents = told()["timing"]
    assert percents == sorted(percents)
    assert len(set(percents)) > 1


@pytest.mark.parametrize("shortest_s", [0.0, 0.02])
def test_the_energy_of_both_loads_is_kept(tmp_path: Path, shortest_s: float) -> None:
    """Of each block, or where the counter changes too seldom of a long block per load."""
    processor = [PROCESSORS[-1]]
    engine = Metered(lambda _: wait(0.001), tmp_path / "zones", processor, shortest_s)
    baseline = TimedEngine(lambda: (lambda _: wait(0.002), {}), [None], processor)
    timed = {OWN: engine, BASELINE: baseline}
    ((shape,), _) = compare_loads(timed, PLAN, 1, LIMITS, machine())
    if shortest_s:
        assert shape["energy_j"] is None
        assert len(shape["long_blocks"]) == 2
        for block in shape["long_blocks"]:
            assert block["energy_j"] == pytest.approx(block["calls"])
    else:
        calls = [len(block) for block in shape["blocks_s"]]
        assert shape["energy_j"] == pytest.approx(calls)
        assert shape["long_blocks"] is None
    assert shape["gpu"] is None


def test_a_machine_that_shows_no_energy_leaves_it_unknown(journal: Path) -> None:
    if Path("/sys/class/powercap/intel-rapl:0").exists():
        pytest.skip("this machine may show energy")
    ((shape,), _) = Engines(journal, own=always(0.001)).compare(comparison_seconds=20.0)
    assert [shape[name] for name in ("energy_j", "gpu", "long_blocks")] == [None] * 3


def on_device(most: int) -> Load:
    return lambda _: Device(most)


def test_streams_are_timed_in_both_loads_and_one_number_that_fails_spoils_nothing(
    journal: Path,
) -> None:
    engines = Engines(journal, own=on_device(2), baseline=always(0.002))
    goal = {**PLAN, "min_calls": 8}
    (shape,), _ = compare_loads(engines.timed(), goal, 1, LIMITS, machine(), [2, 4])
    two, four = shape["streams"]
    assert (two["streams"], two["reason"]) == (2, None)
    assert len(two["calls"]) == len(two["seconds"]) == len(two["gpu"]) == 2 * BLOCKS
    assert four == {
        **{"streams": 4, "reason": "out of memory"},
        **{"calls": [], "seconds": [], "gpu": []},
    }
    assert len(shape["pairs"]) >= PLAN["pairs"]


def test_streams_of_an_engine_that_has_none_are_not_recorded(journal: Path) -> None:
    engines = Engines(journal, own=always(0.001))
    (shape,), _ = compare_loads(engines.timed(), PLAN, 1, LIMITS, machine(), [2])
    assert shape["streams"] is None


def test_a_worker_that_dies_on_streams_ends_the_measurement(journal: Path) -> None:
    engines = Engines(journal, own=lambda _: Deadly())
    with pytest.raises(WorkFailed, match="exit code 3"):
        compare_loads(engines.timed(), PLAN, 1, LIMITS, machine(), [2])
