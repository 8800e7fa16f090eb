"""Both loads of an engine and its baseline, whose times are planted."""

import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from busy import PROCESSORS, wait
from energy_counter import Metered
from played_engines import Played, asked, dies, fails, nowhere, raises
from played_streams import Device
from tightrope.errors import WorkFailed
from tightrope.jobs import child
from tightrope.jobs.child import Limits
from tightrope.measure import streams
from tightrope.measure.blocks import block_sizes
from tightrope.measure.comparison import compare_loads, first_half, second_half
from tightrope.measure.timed_engine import TimedEngine
from tightrope.statistics import speed_verdict, speedup
from tiny_model import LIMITS

PLAN = {
    **{"pairs": 8, "loads": 2, "min_seconds": 0.04, "min_calls": 16, "width": 1e-9, "calls": None},
    **{"comparison_seconds": 0.0, "max_seconds": 30.0},
    **{"warmup_seconds": 0.5, "warmup_calls": 2},
}
OWN, BASELINE = "", "baseline "
BOTH = ("blocks_s", "baseline_blocks_s")
Shapes = list[dict[str, Any]]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def compared(journal: Path) -> Callable[..., tuple[Shapes, dict[str, float]]]:
    """Shapes and facts of a played engine and its baseline of these seconds per call."""

    def compared(
        own: Any = 0.001,
        baseline: Any = 0.002,
        *,
        limits: Limits = LIMITS,
        played: dict[str, Any] | None = None,
        **changes: Any,
    ) -> tuple[Shapes, dict[str, float]]:
        roles = {OWN: own} | ({} if baseline is None else {BASELINE: baseline})
        engines = {
            role: Played(journal, role, one, **(played or {})) for role, one in roles.items()
        }
        return compare_loads(engines, {**PLAN, **changes}, 1, limits, nowhere())

    return compared


def test_both_are_loaded_twice_each_time_in_a_new_process_and_the_other_order(
    compared: Any, journal: Path
) -> None:
    shapes, facts = compared(played={"inputs": 2})
    loads = asked(journal, "load")
    assert [one.name for one in loads] == [OWN, BASELINE, BASELINE, OWN]
    assert len({one.process for one in asked(journal)}) == 4
    assert len(shapes) == 2
    assert (facts["import_s"], facts["load_s"]) == (1.0, 2.0), "of the first load"
    assert facts["peak_rss_bytes"] > 1e6
    for shape in shapes:
        assert shape["first_call_s"] == 0.5
        assert [len(shape[name]) for name in BOTH] == [PLAN["pairs"]] * 2
        assert len(shape["warmups"]) == 2


def test_one_load_is_enough_where_it_is_asked_for(compared: Any, journal: Path) -> None:
    ((shape,), _) = compared(loads=1, calls=20)
    assert [one.name for one in asked(journal, "load")] == [OWN, BASELINE]
    assert (shape["stop"], len(shape["warmups"]), len(shape["pairs"])) == ("calls", 1, 8)
    assert sum(len(block) for block in shape["blocks_s"]) == 20


def test_a_baseline_of_its_own_is_measured_alone_with_two_loads(
    compared: Any, journal: Path
) -> None:
    ((shape,), _) = compared(baseline=None, comparison_seconds=20.0)
    assert [one.name for one in asked(journal, "load")] == [OWN, OWN]
    assert (shape["stop"], shape["baseline_blocks_s"]) == ("minimum", None)
    assert len(shape["pairs"]) == PLAN["pairs"]
    assert [shape[name] for name in ("energy_j", "gpu", "long_blocks", "streams")] == [None] * 4


def test_each_load_has_half_of_the_pairs_and_what_is_loaded_first_has_no_handicap(
    compared: Any,
) -> None:
    """An engine against itself, where the first of two loads makes 10 % slower for good."""
    draw = random.Random(0)

    def handicap(load: int, block: int) -> float:
        return (0.0011 if load % 2 == 0 else 0.001) * draw.uniform(0.99, 1.01)

    ((shape,), _) = compared(handicap, handicap, pairs=20)
    own, theirs = (shape[name] for name in BOTH)
    parts = (slice(10), slice(10, None), slice(None))
    verdicts = [speed_verdict(speedup(own[part], theirs[part])) for part in parts]
    assert verdicts == ["slower", "faster", "tie"]
    assert len(own) == len(theirs) == 20


@pytest.mark.parametrize("loads", [1, 2])
def test_it_stops_by_the_width_of_the_interval_over_all_loads(compared: Any, loads: int) -> None:
    draw = random.Random(2)
    goal = {"width": 0.2, "comparison_seconds": 600.0, "loads": loads}
    ((shape,), _) = compared(lambda load, block: draw.uniform(0.0008, 0.0012), **goal)
    assert shape["stop"] == "width"
    interval = speedup(*(shape[name] for name in BOTH))
    assert (interval.high - interval.low) / interval.value <= 0.2


def test_the_time_limit_is_for_both_loads_together(compared: Any, journal: Path) -> None:
    draw = random.Random(2)
    ((shape,), _) = compared(lambda *_: draw.uniform(0.0008, 0.0012), comparison_seconds=0.4)
    assert shape["stop"] == "time limit"
    assert shape["seconds"] >= 0.4
    first, _, _, last = (one.process for one in asked(journal, "load"))
    assert {first, last} == {one.process for one in asked(journal, "block") if one.name == OWN}


@pytest.mark.parametrize(("calls", "pairs"), [(33, 20), (100, 7), (2, 20), (3, 2)])
def test_a_fixed_protocol_makes_its_calls_with_both_loads_together(
    compared: Any, calls: int, pairs: int
) -> None:
    ((shape,), _) = compared(calls=calls, warmup_calls=5, pairs=pairs)
    for name in BOTH:
        assert sum(len(block) for block in shape[name]) == calls
        assert len(shape[name]) == len(shape["pairs"]) == min(calls, pairs)
    assert shape["stop"] == "calls"
    assert [warmup["calls"] for warmup in shape["warmups"]] == [5, 5]


@pytest.mark.parametrize(("place", "role"), [(0, OWN), (1, BASELINE), (2, BASELINE), (3, OWN)])
def test_a_load_that_fails_is_named_by_its_role(compared: Any, place: int, role: str) -> None:
    def before(load: int, request: str, count: int) -> None:
        if (load, request) == (place, "load"):
            raises()

    with pytest.raises(WorkFailed) as caught:
        compared(played={"before": before})
    assert caught.value.reason == f"{role}RuntimeError: no such operator"
    assert caught.value.role == role


def test_what_the_first_load_has_used_counts_towards_max_seconds(
    compared: Any, journal: Path
) -> None:
    with pytest.raises(WorkFailed, match=r"^too slow \(8 calls in 1\d s\)") as caught:
        compared(own=2.0, max_seconds=15.0, warmup_calls=0)
    assert len(asked(journal, "load")) == 4
    assert not caught.value.transient


def test_the_limits_of_the_job_are_for_both_loads_together(
    compared: Any, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "POLL_SECONDS", 0.05)

    def before(load: int, request: str, count: int) -> None:
        time.sleep(1.5 if load in (0, 2) and request == "load" else 0.0)

    limits = Limits(memory_bytes=8e9, seconds=2.8)
    with pytest.raises(WorkFailed, match="killed after 3 s, the limit of this job") as caught:
        compared(limits=limits, played={"before": before})
    assert len(asked(journal, "load")) == 3, "the first half alone is within the limit"
    assert (caught.value.role, caught.value.transient) == (BASELINE, True)


@pytest.mark.parametrize("pairs", [2, 5, 20])
def test_the_first_half_has_half_of_the_minima_and_blocks_as_long(pairs: int) -> None:
    plan = {**PLAN, "pairs": pairs, "width": 0.05, "comparison_seconds": 5.0}
    half = first_half(plan)
    assert half["pairs"] == math.ceil(pairs / 2)
    assert block_sizes(half)[0] == pytest.approx(block_sizes(plan)[0])
    assert block_sizes(half)[1] == block_sizes(plan)[1]
    assert half["width"] == pytest.approx(0.05 * math.sqrt(2))
    assert (half["comparison_seconds"], half["max_seconds"]) == (2.5, plan["max_seconds"])


def test_the_second_half_has_no_fewer_pairs_than_the_first(compared: Any) -> None:
    more = {**PLAN, "pairs": 20, "min_seconds": 1.0}
    quiet = {"waited": 0.0, "stolen": 0.0, "preempted": 0, "window": 0}
    for count, pairs in ((10, 20), (30, 60)):
        half = second_half(more, {"pairs": [quiet] * count, "foreign_cores": [0.0]})
        assert (half["pairs"], half["min_seconds"]) == (pairs, pairs / 20)


def test_it_tells_how_much_of_its_shapes_and_their_pairs_is_timed(
    compared: Any, told: Callable[[], dict[str, list[int]]]
) -> None:
    compared(played={"inputs": 2})
    # two loads of two shapes, each of 4 pairs
    expected = [6.25 * pair for pair in range(17)]
    assert told()["timing"] == pytest.approx([*expected[:-1], 99, 100], abs=1)
    # within the pairs of a minimum the time that is over
    draw = random.Random(2)
    changes = {"loads": 1, "pairs": 2, "comparison_seconds": 0.3}
    compared(lambda *_: draw.uniform(0.0008, 0.0012), **changes)
    percents = told()["timing"]
    assert percents == sorted(percents)
    assert len(set(percents)) > 1


@pytest.mark.parametrize("shortest_s", [0.0, 0.02])
def test_the_energy_of_both_loads_is_kept(tmp_path: Path, shortest_s: float) -> None:
    """Of each block, or where the counter changes too seldom of a long block per load."""
    processor = PROCESSORS[-1:]
    engine = Metered(lambda _: wait(0.001), tmp_path / "zones", processor, shortest_s)
    baseline = TimedEngine(lambda: (lambda _: wait(0.002), {}), [None], processor)
    timed = {OWN: engine, BASELINE: baseline}
    ((shape,), _) = compare_loads(timed, PLAN, 1, LIMITS, nowhere())
    if shortest_s:
        assert shape["energy_j"] is None
        assert [one["energy_j"] for one in shape["long_blocks"]] == pytest.approx(
            [one["calls"] for one in shape["long_blocks"]]
        )
        assert len(shape["long_blocks"]) == 2
    else:
        calls = [len(block) for block in shape["blocks_s"]]
        assert shape["energy_j"] == pytest.approx(calls)
        assert shape["long_blocks"] is None


def test_streams_are_timed_in_both_loads_and_one_number_that_fails_spoils_nothing(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "BLOCK_SECONDS", 0.02)
    engines = {
        OWN: Played(journal, OWN, 0.001, run=Device(2)),
        BASELINE: Played(journal, BASELINE, 0.002),
    }
    (shape,), _ = compare_loads(engines, PLAN, 1, LIMITS, nowhere(), [2, 4])
    two, four = shape["streams"]
    assert (two["streams"], two["reason"]) == (2, None)
    assert len(two["calls"]) == len(two["seconds"]) == len(two["gpu"]) == 2 * streams.BLOCKS
    failed = {"streams": 4, "reason": "out of memory"}
    assert four == {**failed, "calls": [], "seconds": [], "gpu": []}
    assert len(shape["pairs"]) >= PLAN["pairs"]
    # an engine on the CPU has none
    (shape,), _ = compare_loads({OWN: engines[BASELINE]}, PLAN, 1, LIMITS, nowhere(), [2])
    assert shape["streams"] is None


def test_a_worker_that_dies_on_streams_ends_the_measurement(compared: Any) -> None:
    engine = {OWN: Played(Path("/dev/null"), OWN, 0.001, before=fails("streams", 0, dies))}
    with pytest.raises(WorkFailed, match="killed by SIGKILL"):
        compare_loads(engine, PLAN, 1, LIMITS, nowhere(), [2])
