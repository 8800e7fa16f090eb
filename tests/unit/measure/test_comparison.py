"""An engine and its baseline in pairs of blocks, whose times are planted, with one load or two."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from busy import PROCESSORS, wait
from disturbed import QUIET
from energy_counter import Metered
from latency_records import PLAN as SHORT_PLAN
from played_engines import STOLEN, Played, asked, dies, fails, hangs, nowhere, raises
from played_streams import Device
from tightrope.errors import WorkFailed
from tightrope.jobs import child
from tightrope.jobs.child import Limits
from tightrope.measure import latency, rounds, timed_engine
from tightrope.measure.latency import FEWEST_IN_VAIN, compare_loads, second_half
from tightrope.records.latency import StreamBlocks, TimedShape
from tightrope.records.record import WarmUp
from tightrope.statistics import speed_verdict, speedup
from tiny_model import LIMITS

PLAN = {
    **SHORT_PLAN,
    "min_seconds": 0.02,
    "min_calls": 8,
    "max_seconds": 30.0,
    "warmup_seconds": 0.5,
}
OWN, BASELINE = "", "baseline "
Compare = Callable[..., TimedShape]


def blocks_of(shape: TimedShape) -> list[list[list[float]]]:
    return [one for one in (shape.blocks_s, shape.baseline_blocks_s) if one is not None]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def compared(journal: Path) -> Compare:
    """The last shape of a played engine and its baseline of these seconds per call.

    By PLAN, with changes; `played` are options of either, `every` of both. Adds to `facts`.
    """

    def compared(own=0.001, baseline=0.002, *, limits=LIMITS, played=None, **changes):
        roles = {OWN: own} | ({} if baseline is None else {BASELINE: baseline})
        every, each = changes.pop("every", {}), played or {}
        engines = {
            role: Played(journal, role, one, **{**every, **each.get(role, {})})
            for role, one in roles.items()
        }
        shapes = [TimedShape(batch=1) for _ in engines[OWN].inputs]
        facts = changes.pop("facts", {})
        facts |= compare_loads(engines, shapes, {**PLAN, **changes}, 1, limits, nowhere())
        return shapes[-1]

    return compared


def stolen(*numbers: int) -> dict[str, Any]:
    """Disturbs these blocks of an engine, by default all."""
    return {"facts": lambda load, block: STOLEN if not numbers or block in numbers else {}}


def jumpy(seed: int) -> Callable[[int, int], float]:
    draw = random.Random(seed)
    return lambda load, block: draw.choice([0.001, 0.003])


def width(shape: TimedShape, pairs: int) -> float:
    """Of the interval of the speed-up over the first pairs, relative to it."""
    found = speedup(*(blocks[:pairs] for blocks in blocks_of(shape)))
    return (found.high - found.low) / found.value


@pytest.mark.parametrize(
    ("loads", "baseline", "roles"),
    [
        (2, 0.002, [OWN, BASELINE, BASELINE, OWN]),
        (1, 0.002, [OWN, BASELINE]),
        # a baseline of its own
        (2, None, [OWN, OWN]),
    ],
)
def test_a_load_is_new_processes_in_the_other_order(
    compared, journal, told, loads, baseline, roles
) -> None:
    facts: dict[str, float] = {}
    shape = compared(baseline=baseline, loads=loads, every={"inputs": 2}, facts=facts)
    assert [one.name for one in asked(journal, "load")] == roles
    assert len({one.process for one in asked(journal)}) == len(roles)
    assert (len(shape.pairs), len(shape.warmups)) == (PLAN["pairs"], loads)
    assert (facts["import_s"], facts["load_s"]) == (1.0, 2.0), "of the first load"
    assert (shape.first_call_s, facts["peak_rss_bytes"] > 1e6) == (0.5, True)
    assert (shape.baseline_blocks_s is None) is (baseline is None)
    # of two shapes, each of 4 pairs
    step = "timing" if baseline else "timing alone"
    assert told()[step] == pytest.approx([*(12.5 * pair for pair in range(8)), 99, 100], abs=1)


def test_both_warm_up_and_take_turns_in_an_order_that_is_drawn_the_same(compared, journal) -> None:
    orders: list[list[str]] = []
    for _ in range(2):
        journal.write_text("")
        compared(calls=12, pairs=12)
        found = [one for one in asked(journal, "warm_up", "block")]
        assert [one.request for one in found] == ["warm_up"] * 2 + ["block"] * 24
        names = ["b" if one.name else "a" for one in found[2:]]
        orders.append(["".join(names[place : place + 2]) for place in range(0, 24, 2)])
    assert orders[0] == orders[1]
    assert set(orders[0]) == {"ab", "ba"}
    assert orders[0] not in (["ab", "ba"] * 6, ["ba", "ab"] * 6), "strictly alternating"


def test_a_shape_holds_the_blocks_of_both_and_facts_of_the_candidate(compared: Compare) -> None:
    facts = {OWN: {"energy_j": 3.0, "idle_s": 0.005}, BASELINE: {"energy_j": 9.0}}
    played = {role: {"facts": lambda *_, one=one: one} for role, one in facts.items()}
    shape = compared(played=played)
    assert shape.blocks_s == [[0.001] * 5] * 4
    assert shape.baseline_blocks_s == [[0.002] * 3] * 4
    assert shape.warmups == [WarmUp(calls=2, seconds=0.0, stable=None)]
    assert (shape.threads_busy, shape.cores_used) == (1, 1.0)
    assert shape.idle_share == pytest.approx(4 * 0.005 / (20 * 0.001 + 12 * 0.002))
    assert [pair.window for pair in shape.pairs] == [0, 1, 2, 3]
    assert (shape.energy_j, shape.gpu, shape.device_s) == ([3.0] * 4, None, None)
    assert shape.long_blocks is shape.streams is None


@pytest.mark.parametrize(
    ("changes", "stop", "pairs", "kept"),
    [
        ({"width": 1e9, "comparison_seconds": 20.0, "pairs": 10}, "width", 10, 10),
        ({}, "time limit", 4, 4),
        # pairs and calls are goals, but for those that a median takes
        ({"pairs": 20}, "time limit", 12, 12),
        ({"width": 1e9, "comparison_seconds": 20.0, "min_calls": 70}, "width", 14, 14),
        # without a baseline there is no interval
        ({"baseline": None, "comparison_seconds": 20.0}, "minimum", 4, 4),
        # what other load disturbed does not count and is measured again while there is time
        ({"width": 1e9, "comparison_seconds": 9.0, "played": {OWN: stolen(0, 2)}}, "width", 6, 4),
        ({"width": 1e9, "comparison_seconds": 9.0, "played": {BASELINE: stolen(1)}}, "width", 5, 4),
        ({"calls": 20, "comparison_seconds": 20.0, "played": {OWN: stolen()}}, "calls", 4, 0),
    ],
)
def test_why_it_stops(compared, changes, stop, pairs, kept) -> None:
    shape = compared(**changes)
    assert (shape.stop, len(shape.pairs), len(shape.undisturbed())) == (stop, pairs, kept)


def test_with_a_bound_of_p99_the_candidate_alone_has_the_calls_that_it_takes(compared) -> None:
    for bound_ms, seconds, enough in ((2.0, 0.001, True), (0.5, 0.001, False)):
        shape = compared(seconds, 0.002, p99_ms=[bound_ms])
        calls, others = (sum(map(len, blocks)) for blocks in blocks_of(shape))
        assert (calls >= 662) is enough, "more would not help where the median is over the bound"
        assert (shape.stop, others < 60) == ("time limit", True)
    # a limit that calls within the bound cannot reach
    slow = compared(0.01, 0.002, p99_ms=[50.0], max_seconds=3.0)
    assert sum(map(len, slow.blocks_s)) >= 662
    # a slow one is not asked for more, however few calls tell its median
    assert sum(map(len, compared(0.003, 0.002, p99_ms=[2.0], loads=2).blocks_s)) < 40
    tail = compared(lambda load, block: 0.003 if block % 9 == 8 else 0.001, 0.002, p99_ms=[2.0])
    assert sum(map(len, tail.blocks_s)) >= 662, "by how much they break it is known"
    # nothing is known to keep it where most pairs do not count
    assert compared(p99_ms=[2.0], played={OWN: stolen(*range(1, 100, 2))}).stop == "time limit"


def test_it_goes_on_until_its_interval_is_narrow_and_no_longer(compared: Compare) -> None:
    goal = {"pairs": 10, "width": 0.6, "comparison_seconds": 600.0, "min_seconds": 0.001}
    shape = compared(jumpy(1), 0.002, min_calls=10, **goal)
    pairs = len(shape.pairs)
    assert (shape.stop, pairs % 10) == ("width", 0)
    assert pairs > 10
    assert width(shape, pairs) <= 0.6 < min(width(shape, n) for n in range(10, pairs, 10))


def test_measuring_ends_at_the_time_limit_or_where_most_pairs_do_not_count(compared, monkeypatch):
    shape = compared(jumpy(1), 0.002, comparison_seconds=0.3, loads=2)
    assert (shape.stop, shape.seconds >= 0.3) == ("time limit", True)
    monkeypatch.setattr(latency, "IN_VAIN_SECONDS", 0.0)
    shape = compared(pairs=100, played={OWN: stolen()})
    assert (shape.stop, len(shape.pairs)) == ("disturbed", FEWEST_IN_VAIN)
    half = compared(pairs=10, played={OWN: stolen(*range(1, 100, 2))})
    assert (half.stop, len(half.pairs)) == ("time limit", 19), "10 count"


@pytest.mark.parametrize(("loads", "calls", "pairs"), [(2, 33, 20), (2, 7, 20), (1, 3, 2)])
def test_a_fixed_protocol_makes_its_calls(compared, loads, calls, pairs) -> None:
    others = {"min_seconds": 60.0, "min_calls": 10**6, "width": 1e9, "warmup_calls": 5}
    shape = compared(calls=calls, pairs=pairs, loads=loads, **others)
    assert (shape.stop, len(shape.pairs)) == ("calls", min(calls, pairs))
    assert [warmup.calls for warmup in shape.warmups] == [5] * loads
    for own in blocks_of(shape):
        sizes = [len(block) for block in own]
        assert sum(sizes) == calls
        assert max(sizes) - min(sizes) <= 1


def test_warm_up_is_in_windows_as_long_as_a_block(compared: Compare, journal: Path) -> None:
    window = PLAN["min_seconds"] / PLAN["pairs"]
    for changes, calls, most_seconds in (
        ({"warmup_calls": 7}, 7, 30.0),
        ({"warmup_calls": None}, None, 0.5),
        ({"warmup_calls": None, "max_seconds": 0.25}, None, 0.25),
    ):
        journal.write_text("")
        compared(**changes)
        expected = [0, calls, pytest.approx(most_seconds), window]
        assert [one.arguments for one in asked(journal, "warm_up")] == [expected] * 2


@pytest.mark.parametrize("role", [OWN, BASELINE], ids=["own", "baseline"])
def test_the_engine_that_took_longer_than_max_seconds_is_too_slow(compared, journal, role) -> None:
    """Each has its seconds for itself: 16 in its blocks of the first load, the other one 10."""
    seconds = {OWN: 5.0, BASELINE: 5.0, role: 8.0}
    with pytest.raises(WorkFailed, match=rf"^{role}too slow \(4 calls in 1\d s\)$") as caught:
        compared(*seconds.values(), loads=2, max_seconds=15.0)
    assert len(asked(journal, "load")) == 4
    assert (caught.value.role, caught.value.transient) == (role, False)


@pytest.mark.parametrize(
    ("load", "request_", "then", "role", "reason"),
    [
        (0, "load", raises, OWN, "RuntimeError: no such operator$"),
        (2, "block", dies, BASELINE, "killed by SIGKILL"),
        (3, "block", hangs, OWN, r"timed out after \d s"),
    ],
)
def test_one_that_fails_has_its_role(compared, monkeypatch, load, request_, then, role, reason):
    monkeypatch.setattr(rounds, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(child, "POLL_SECONDS", 0.05)

    def before(place: int, request: str, _: int) -> None:
        if (place, request) == (load, request_):
            then()

    with pytest.raises(WorkFailed, match=f"^{role}{reason}") as caught:
        compared(every={"before": before}, loads=2, max_seconds=0.5)
    assert (caught.value.role, caught.value.transient) == (role, then is not raises)


def test_the_limits_of_the_job_are_for_both_loads_together(compared, journal, monkeypatch) -> None:
    monkeypatch.setattr(child, "POLL_SECONDS", 0.05)

    def before(load: int, request: str, count: int) -> None:
        time.sleep(0.6 if load in (0, 2) and request == "load" else 0.0)

    limits = Limits(memory_bytes=8e9, seconds=1.1)
    with pytest.raises(WorkFailed, match="killed after 1 s, the limit of this job") as caught:
        compared(limits=limits, loads=2, every={"before": before})
    assert len(asked(journal, "load")) == 3, "the first half alone is within the limit"
    assert (caught.value.role, caught.value.transient) == (BASELINE, True)


def test_what_is_loaded_first_has_no_handicap_over_both_loads(compared: Compare) -> None:
    """An engine against itself, where the first of two loads makes 10 % slower for good."""
    draw = random.Random(0)

    def handicap(load: int, block: int) -> float:
        return (0.0011 if load % 2 == 0 else 0.001) * draw.uniform(0.99, 1.01)

    shape = compared(handicap, handicap, pairs=20, loads=2, width=1e9, comparison_seconds=20.0)
    own, theirs = blocks_of(shape)
    parts = (slice(10), slice(10, None), slice(None))
    verdicts = [speed_verdict(speedup(own[part], theirs[part])) for part in parts]
    assert verdicts == ["slower", "faster", "tie"]
    assert len(own) == len(theirs) == 20
    assert [pair.window for pair in shape.pairs] == sorted({pair.window for pair in shape.pairs})


def test_the_second_half_has_no_fewer_pairs_and_own_load_is_not_others(compared: Compare) -> None:
    for count, pairs in ((10, 20), (30, 60)):
        first = TimedShape(batch=1, pairs=[QUIET] * count, foreign_cores=[0.0])
        half = second_half({**PLAN, "pairs": 20, "min_seconds": 1.0}, first)
        assert (half["pairs"], half["min_seconds"]) == (pairs, pairs / 20)
    # one uses ever less, as if other programs used more; the other one makes up for it
    less, more = {"used_s": -1e6}, {"used_s": 1e6}
    assert set(compared(played={OWN: less, BASELINE: more}).foreign_cores) == {0.0}
    for role in (OWN, BASELINE):
        assert min(compared(played={role: less}).foreign_cores) > 1


def test_the_energy_of_both_loads_is_kept(tmp_path: Path) -> None:
    """Of each block, or where the counter changes too seldom of a long block per load."""

    def measured(shortest_s: float) -> TimedShape:
        zones = tmp_path / str(shortest_s)
        engine = Metered(lambda _: wait(0.001), zones, PROCESSORS[-1:], shortest_s)
        shape, plan = TimedShape(batch=1), {**PLAN, "loads": 2}
        compare_loads({OWN: engine}, [shape], plan, 1, LIMITS, nowhere())
        return shape

    each, long = measured(0.0), measured(0.1)
    calls = [len(block) for block in each.blocks_s]
    assert (each.energy_j, each.long_blocks) == (pytest.approx(calls), None)
    assert (long.energy_j, len(long.long_blocks)) == (None, 2)
    assert all(one.energy_j == pytest.approx(one.calls) for one in long.long_blocks)


def test_streams_are_timed_in_both_loads_whichever_number_fails(journal, monkeypatch) -> None:
    monkeypatch.setattr(timed_engine, "BLOCK_SECONDS", 0.02)
    monkeypatch.setattr(latency, "GRACE_SECONDS", 0.3)
    engine, plan = Played(journal, OWN, 0.001, run=Device(2)), {**PLAN, "loads": 2}
    shape = TimedShape(batch=1)
    compare_loads({OWN: engine}, [shape], plan, 1, LIMITS, nowhere(), [2, 4])
    two, four = shape.streams or ()
    assert (two.streams, two.reason) == (2, None)
    assert len(two.calls) == len(two.seconds) == len(two.gpu) == 2 * timed_engine.BLOCKS
    assert four == StreamBlocks(streams=4, reason="out of memory")
    assert len(shape.pairs) == PLAN["pairs"]
    # one that dies ends the measurement
    engine = Played(journal, OWN, 0.001, before=fails("streams", 0, dies))
    with pytest.raises(WorkFailed, match="killed by SIGKILL"):
        compare_loads({OWN: engine}, [shape], plan, 1, LIMITS, nowhere(), [2])
