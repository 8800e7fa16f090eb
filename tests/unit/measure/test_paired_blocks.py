"""An engine and its baseline in pairs of blocks, whose times are planted."""

import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from busy import PROCESSORS, busy_child, wait
from disturbed import machine
from played_engines import STOLEN, Played, asked, dies, fails, hangs, nowhere
from tightrope.errors import WorkFailed
from tightrope.jobs import child
from tightrope.jobs.child import Child
from tightrope.machine.interference import disturbance, undisturbed
from tightrope.measure import blocks, paired_blocks
from tightrope.measure.blocks import block_sizes
from tightrope.measure.paired_blocks import FEWEST_IN_VAIN, compare
from tightrope.measure.timed_engine import TimedEngine
from tightrope.statistics import speedup
from tiny_model import LIMITS

PLAN = {
    **{"pairs": 4, "min_seconds": 0.02, "min_calls": 8, "width": 1e-9, "calls": None},
    **{"comparison_seconds": 0.0, "max_seconds": 30.0},
    **{"warmup_seconds": 0.5, "warmup_calls": 2},
}
OWN, BASELINE = "", "baseline "
ROLES = pytest.mark.parametrize("role", [OWN, BASELINE], ids=["own", "baseline"])
Compare = Callable[..., dict[str, Any]]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def compared(journal: Path) -> Compare:
    """Compare by PLAN, with changes, a played engine and its baseline of these seconds per call."""

    def compared(
        own: Any = 0.001,
        baseline: Any = 0.002,
        *,
        index: int = 0,
        earlier: dict[str, Any] | None = None,
        played: dict[str, dict[str, Any]] | None = None,
        quiet: Any = None,
        **changes: Any,
    ) -> dict[str, Any]:
        roles = {OWN: own} | ({} if baseline is None else {BASELINE: baseline})
        with ExitStack() as stack:
            workers = [
                stack.enter_context(
                    Child(Played(journal, role, one, **(played or {}).get(role, {})), LIMITS, role)
                )
                for role, one in roles.items()
            ]
            plan, one = {**PLAN, **changes}, quiet or nowhere()
            return compare(workers, index, plan, threads=1, machine=one, earlier=earlier)

    return compared


def stolen(*numbers: int) -> dict[str, Any]:
    """Disturbs these blocks of an engine, by default all."""
    return {"facts": lambda load, block: STOLEN if not numbers or block in numbers else {}}


def jumpy(seed: int) -> Callable[[int, int], float]:
    draw = random.Random(seed)
    return lambda load, block: draw.choice([0.001, 0.003])


def width(shape: dict[str, Any], pairs: int) -> float:
    """Of the interval of the speed-up over the first pairs, relative to it."""
    found = speedup(shape["blocks_s"][:pairs], shape["baseline_blocks_s"][:pairs])
    return (found.high - found.low) / found.value


def test_both_warm_up_and_then_take_turns_in_an_order_drawn_the_same_at_every_repeat(
    compared: Compare, journal: Path
) -> None:
    orders = []
    for index in (0, 0, 1):
        journal.write_text("")
        compared(calls=12, pairs=12, index=index)
        entries = asked(journal, "warm_up", "block")
        assert {one.arguments[0] for one in entries} == {index}
        assert [one.request for one in entries] == ["warm_up"] * 2 + ["block"] * 24
        names = ["b" if one.name else "a" for one in entries[2:]]
        orders.append(["".join(names[place : place + 2]) for place in range(0, 24, 2)])
    first, again, other = orders
    assert first == again != other
    assert set(first) == {"ab", "ba"}
    assert first != ["ab", "ba"] * 6 and first != ["ba", "ab"] * 6, "strictly alternating"


def test_a_shape_holds_the_blocks_of_both_and_facts_of_the_candidate(compared: Compare) -> None:
    facts = {OWN: {"energy_j": 3.0, "idle_s": 0.005}, BASELINE: {"energy_j": 9.0, "idle_s": 0.0}}
    played = {role: {"facts": lambda load, block, one=one: one} for role, one in facts.items()}
    shape = compared(played=played)
    assert shape["blocks_s"] == [[0.001] * 5] * 4
    assert shape["baseline_blocks_s"] == [[0.002] * 3] * 4
    assert (shape["energy_j"], shape["gpu"]) == ([3.0] * 4, None)
    assert shape["warmups"] == [{"calls": 2, "seconds": 0.0, "stable": None}]
    assert (shape["threads_busy"], shape["cores_used"]) == (1, 1.0)
    assert shape["idle_share"] == pytest.approx(4 * 0.005 / (20 * 0.001 + 12 * 0.002))
    assert [pair["window"] for pair in shape["pairs"]] == [0, 1, 2, 3]
    assert undisturbed(shape) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("changes", "stop", "pairs", "kept"),
    [
        ({"width": 1e9, "comparison_seconds": 20.0, "pairs": 10}, "width", 10, 10),
        ({"width": 1e9}, "width", 4, 4),
        ({}, "time limit", 4, 4),
        # without a baseline there is no interval
        ({"baseline": None, "comparison_seconds": 20.0}, "minimum", 4, 4),
        # what other load disturbed does not count and is measured again while there is time
        (
            {"width": 1e9, "comparison_seconds": 20.0, "played": {OWN: stolen(0, 2)}},
            "width",
            6,
            4,
        ),
        ({"width": 1e9, "comparison_seconds": 9.0, "played": {BASELINE: stolen(1)}}, "width", 5, 4),
        ({"played": {OWN: stolen()}}, "time limit", 4, 0),
        ({"calls": 20, "comparison_seconds": 20.0, "played": {OWN: stolen()}}, "calls", 4, 0),
    ],
)
def test_measuring_stops_for_a_reason(
    compared: Compare, changes: dict[str, Any], stop: str, pairs: int, kept: int
) -> None:
    shape = compared(**changes)
    assert (shape["stop"], len(shape["pairs"])) == (stop, pairs)
    assert len(undisturbed(shape)) == kept


def test_it_goes_on_until_its_interval_is_narrow_and_no_longer(compared: Compare) -> None:
    goal = {"pairs": 10, "width": 0.6, "comparison_seconds": 600.0}
    shape = compared(jumpy(1), 0.002, min_seconds=0.001, min_calls=10, **goal)
    pairs = len(shape["pairs"])
    assert (shape["stop"], pairs % 10) == ("width", 0)
    assert pairs > 10
    assert width(shape, pairs) <= 0.6 < min(width(shape, n) for n in range(10, pairs, 10))


def test_an_interval_that_stays_wide_is_given_up_at_the_time_limit(compared: Compare) -> None:
    shape = compared(jumpy(1), 0.002, comparison_seconds=0.2)
    assert shape["stop"] == "time limit"
    assert shape["seconds"] >= 0.2
    # warm-up counts
    slow = {OWN: {"before": fails("warm_up", 0, lambda: time.sleep(0.4))}}
    shape = compared(comparison_seconds=0.4, played=slow)
    assert (shape["stop"], len(shape["pairs"])) == ("time limit", PLAN["pairs"])


def test_pairs_that_do_not_count_are_not_measured_for_minutes(
    compared: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paired_blocks, "IN_VAIN_SECONDS", 0.0)
    shape = compared(pairs=100, played={OWN: stolen()})
    assert (shape["stop"], len(shape["pairs"])) == ("disturbed", FEWEST_IN_VAIN)
    half = compared(pairs=10, played={OWN: stolen(*range(1, 100, 2))})
    assert (half["stop"], len(half["pairs"])) == ("time limit", 10)


@pytest.mark.parametrize(("calls", "pairs"), [(100, 20), (7, 20), (33, 20), (100, 7), (1, 2)])
def test_a_fixed_protocol_makes_exactly_its_calls_of_each(
    compared: Compare, calls: int, pairs: int
) -> None:
    others = {"min_seconds": 60.0, "min_calls": 10**6, "width": 1e9}
    shape = compared(calls=calls, pairs=pairs, **others)
    assert shape["stop"] == "calls"
    assert len(shape["pairs"]) == min(calls, pairs)
    for name in ("blocks_s", "baseline_blocks_s"):
        sizes = [len(block) for block in shape[name]]
        assert sum(sizes) == calls
        assert max(sizes) - min(sizes) <= 1


def test_the_sizes_of_blocks_make_up_the_minima() -> None:
    seconds, counts = block_sizes({**PLAN, "pairs": 20, "min_seconds": 1.0, "min_calls": 50})
    assert (20 * seconds, counts) == (1.0, [3])
    seconds, counts = block_sizes({**PLAN, "pairs": 20, "calls": 33})
    assert (seconds, sorted(counts, reverse=True)) == (0.0, [2] * 13 + [1] * 7)


@pytest.mark.parametrize(
    ("changes", "calls", "most_seconds"),
    [
        ({"warmup_calls": 7}, 7, 30.0),
        ({"warmup_calls": None}, None, 0.5),
        ({"warmup_calls": None, "calls": 20}, None, 0.5),
        ({"warmup_calls": None, "max_seconds": 0.25}, None, 0.25),
    ],
)
def test_warm_up_has_its_calls_or_seconds_in_windows_as_long_as_a_block(
    compared: Compare, journal: Path, changes: dict[str, Any], calls: int, most_seconds: float
) -> None:
    compared(**changes)
    for one in asked(journal, "warm_up"):
        index, asked_calls, seconds, window = one.arguments
        assert (index, asked_calls, window) == (0, calls, PLAN["min_seconds"] / PLAN["pairs"])
        assert seconds == pytest.approx(most_seconds)


@ROLES
def test_the_engine_that_took_longer_than_max_seconds_is_too_slow(
    compared: Compare, role: str
) -> None:
    """Each has its seconds for itself: 32 in its blocks before, the other one 20."""
    seconds = {OWN: 2.5, BASELINE: 2.5, role: 4.0}
    first = compared(*seconds.values(), calls=8)
    with pytest.raises(WorkFailed, match=rf"^{role}too slow \(10 calls in 3\d s\)$") as caught:
        compared(*seconds.values(), calls=16, pairs=8, earlier=first)
    assert (caught.value.role, caught.value.transient) == (role, False)


@pytest.mark.parametrize(
    ("role", "request_", "then", "reason"),
    [
        (OWN, "block", hangs, r"timed out after \d s"),
        (BASELINE, "warm_up", hangs, r"timed out after \d s"),
        (OWN, "warm_up", dies, "killed by SIGKILL"),
        (BASELINE, "block", dies, "killed by SIGKILL"),
    ],
)
def test_an_engine_that_hangs_or_dies_is_named_by_its_role(
    compared: Compare,
    monkeypatch: pytest.MonkeyPatch,
    role: str,
    request_: str,
    then: Callable[[], None],
    reason: str,
) -> None:
    monkeypatch.setattr(blocks, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(child, "POLL_SECONDS", 0.05)
    with pytest.raises(WorkFailed, match=f"^{role}{reason}") as caught:
        compared(played={role: {"before": fails(request_, 0, then)}}, max_seconds=0.9)
    assert (caught.value.role, caught.value.transient) == (role, True)


def test_what_was_measured_before_is_gone_on_from(compared: Compare) -> None:
    """Windows and pairs of the earlier workers are kept as they are, new ones follow."""
    first = compared()
    shape = compared(0.003, 0.004, pairs=8, min_seconds=0.04, earlier=first)
    assert shape["pairs"][:4] == first["pairs"]
    assert shape["blocks_s"] == [[0.001] * 5] * 4 + [[0.003] * 2] * 4
    assert shape["foreign_cores"][: len(first["foreign_cores"])] == first["foreign_cores"]
    assert min(pair["window"] for pair in shape["pairs"][4:]) >= len(first["foreign_cores"])
    assert len(shape["warmups"]) == 2
    assert shape["seconds"] > first["seconds"]


def test_the_own_load_of_all_engines_is_not_that_of_others(compared: Compare) -> None:
    """One uses ever less, as if other programs used more; the other one makes up for it."""
    less, more = {"used_s": -1e6}, {"used_s": 1e6}
    assert set(compared(played={OWN: less, BASELINE: more})["foreign_cores"]) == {0.0}
    assert min(compared(played={OWN: less})["foreign_cores"]) > 1
    assert min(compared(played={BASELINE: less})["foreign_cores"]) > 1


def test_beside_another_program_pairs_do_not_count_and_its_time_is_given_back() -> None:
    """Real engines in blocks of 40 ms, much longer than the slices of a shared processor."""
    long = {"pairs": 5, "min_seconds": 0.2, "min_calls": 5, "comparison_seconds": 0.5}
    one, processor = machine(1.5), PROCESSORS[-1:]
    with busy_child(*processor), ExitStack() as stack:
        engines = [TimedEngine(lambda: (wait, {}), [0.002], processor) for _ in range(2)]
        workers = [stack.enter_context(Child(engine, LIMITS)) for engine in engines]
        for worker in workers:
            worker.ask("load")
        began = time.monotonic()
        shape = compare(workers, 0, {**PLAN, **long}, threads=1, machine=one)
        elapsed = time.monotonic() - began
    assert disturbance(shape["pairs"][0], shape["foreign_cores"]) == "waited"
    assert one.left_s == 0
    assert elapsed >= shape["seconds"] + 1.49
