"""Real child processes whose engines keep a processor busy for a known time a call."""

import itertools
import os
import random
import signal
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import pytest
from busy import PROCESSORS, busy_child, hash_forever, needs_quiet, wait
from disturbed import machine
from tightrope.errors import WorkFailed
from tightrope.jobs import child
from tightrope.jobs.child import Child
from tightrope.machine.interference import disturbance, undisturbed
from tightrope.measure import blocks, paired_blocks
from tightrope.measure.blocks import block_sizes
from tightrope.measure.paired_blocks import FEWEST_IN_VAIN, compare
from tightrope.measure.timed_engine import TimedEngine
from tightrope.statistics import speedup
from tightrope.summary import noise
from tiny_model import LIMITS

PLAN = {
    "pairs": 4,
    "min_seconds": 0.02,
    "min_calls": 8,
    "width": 1e-9,
    "comparison_seconds": 0.0,
    "calls": None,
    "warmup_seconds": 0.5,
    "warmup_calls": 2,
    "max_seconds": 30.0,
}
ONE = PROCESSORS[-1]
ANOTHER = PROCESSORS[0]
TWO_PROCESSORS = pytest.mark.skipif(len(PROCESSORS) < 2, reason="needs two processors")
Run = Callable[[Any], None]


class Journaled(TimedEngine):
    """A timed engine that writes down when it warmed up and ran blocks, with how many calls."""

    def __init__(self, run: Run, processor: int) -> None:
        super().__init__(lambda: (self.counted, {}), [None, None], [processor])
        self.work = run
        self.calls = 0
        self.journal: list[dict[str, Any]] = []

    def counted(self, inputs: Any) -> None:
        self.calls += 1
        self.work(inputs)

    def __call__(self, request: str, *arguments: Any) -> Any:
        began, before = time.monotonic(), self.calls
        answer = super().__call__(request, *arguments)
        if request in ("warm_up", "block"):
            facts = {"request": request, "began": began, "ended": time.monotonic()}
            self.journal.append({**facts, "calls": self.calls - before})
        return answer

    def read_journal(self) -> list[dict[str, Any]]:
        return self.journal


def takes(*seconds: float) -> Run:
    """An engine whose calls take these seconds in turn, the last of them for ever after."""
    remaining = itertools.chain(seconds[:-1], itertools.repeat(seconds[-1]))
    return lambda _: wait(next(remaining))


def never_stable() -> Run:
    """An engine of which every other call takes twice as long."""
    seconds = itertools.cycle([0.05, 0.1])
    return lambda _: wait(next(seconds))


def race(
    *runs: Run,
    processors: tuple[int, ...] = (ONE, ONE),
    index: int = 0,
    quiet_seconds: float = 0.0,
    **changes: Any,
) -> tuple[dict[str, Any], list[list[dict[str, Any]]]]:
    """The shape that `compare` gives of an engine and its baseline, and what both wrote down."""
    with ExitStack() as stack:
        workers = []
        for run, processor, role in zip(runs, processors, ("", "baseline "), strict=False):
            engine = Journaled(run, processor)
            workers.append(stack.enter_context(Child(engine, LIMITS, role)))
            workers[-1].ask("load")
        shape = compare(
            workers, index, {**PLAN, **changes}, threads=1, machine=machine(quiet_seconds)
        )
        return shape, [worker.ask("read_journal") for worker in workers]


def fails(*runs: Run, **changes: Any) -> WorkFailed:
    with pytest.raises(WorkFailed) as caught:
        race(*runs, **changes)
    return caught.value


def flat(blocks: list[list[float]]) -> list[float]:
    return [sample for block in blocks for sample in block]


def quiet(shape: dict[str, Any]) -> list[int]:
    return undisturbed(shape)


def width(shape: dict[str, Any], indices: list[int]) -> float:
    """Of the interval of the speed-up over these pairs, relative to it."""
    own, theirs = (
        [shape[name][index] for index in indices] for name in ("blocks_s", "baseline_blocks_s")
    )
    interval = speedup(own, theirs)
    return (interval.high - interval.low) / interval.value


def turns(journals: list[list[dict[str, Any]]]) -> list[str]:
    """The order of the two blocks of each pair, `ab` or `ba`."""
    blocks = sorted(
        (entry["began"], name)
        for name, journal in zip("ab", journals, strict=True)
        for entry in journal
        if entry["request"] == "block"
    )
    return ["".join(name for _, name in blocks[i : i + 2]) for i in range(0, len(blocks), 2)]


def test_samples_are_the_known_times_of_each_engine() -> None:
    shape, _ = race(takes(0.001), takes(0.002))
    for name, seconds in (("blocks_s", 0.001), ("baseline_blocks_s", 0.002)):
        samples = flat(shape[name])
        assert seconds <= min(samples) < 1.2 * seconds
    assert len(shape["blocks_s"]) == len(shape["baseline_blocks_s"]) == len(shape["pairs"])


def test_both_take_turns_pair_by_pair_and_never_run_at_once() -> None:
    _, journals = race(takes(0.001), takes(0.002), pairs=12)
    assert set(turns(journals)) == {"ab", "ba"}
    entries = sorted(itertools.chain(*journals), key=lambda entry: entry["began"])
    assert [entry["request"] for entry in entries[:2]] == ["warm_up", "warm_up"]
    for before, after in pairwise(entries):
        assert after["began"] >= before["ended"]


def test_who_goes_first_is_drawn_at_random_and_the_same_at_every_repeat() -> None:
    first, again, other = (
        turns(race(takes(0.001), takes(0.001), calls=12, pairs=12, index=index)[1])
        for index in (0, 0, 1)
    )
    assert first == again != other
    assert [one for one, _ in itertools.groupby(first)] != first, "strictly alternating"


def test_the_baseline_is_measured_alone_until_the_minima() -> None:
    shape, journals = race(takes(0.001), comparison_seconds=20.0)
    assert shape["baseline_blocks_s"] is None
    assert len(journals) == 1
    assert shape["stop"] == "minimum"
    assert len(quiet(shape)) == PLAN["pairs"]


@pytest.mark.parametrize("exact", [None, 5], ids=["until-stable", "exactly"])
def test_warm_up_is_not_among_the_samples(exact: int | None) -> None:
    cold = [0.4, 0.2, 0.1, 0.001]  # no two of them are alike
    changes = {"min_seconds": 0.04, "warmup_calls": exact, "warmup_seconds": 5.0}
    shape, (own, _) = race(takes(*cold), takes(0.001), **changes)
    assert max(flat(shape["blocks_s"])) < 0.1
    assert own[0]["request"] == "warm_up"
    (warmup,) = shape["warmups"]
    assert warmup["calls"] == own[0]["calls"]
    assert warmup["stable"] is (None if exact else True)
    assert own[0]["calls"] == exact or (exact is None and own[0]["calls"] > 3)


@pytest.mark.parametrize(
    ("pairs", "seconds", "calls"), [(10, 0.01, 1), (5, 0.3, 1), (4, 0.001, 42), (10, 0.2, 100)]
)
def test_no_comparison_stops_before_its_minima(pairs: int, seconds: float, calls: int) -> None:
    changes = {"pairs": pairs, "min_seconds": seconds, "min_calls": calls}

    def stopped() -> bool:
        shape, _ = race(takes(0.001), takes(0.003), width=1e9, comparison_seconds=0.0, **changes)
        if shape["stop"] == "disturbed":
            return False
        assert len(shape["pairs"]) == pairs
        assert shape["stop"] in ("width", "time limit")
        for name in ("blocks_s", "baseline_blocks_s"):
            samples = flat(shape[name])
            assert len(samples) >= calls
            assert sum(samples) >= 0.9 * seconds
        return True

    needs_quiet(stopped)


def test_a_comparison_stops_when_its_interval_is_narrow() -> None:
    shape, _ = race(takes(0.001), takes(0.002), pairs=10, width=1e9, comparison_seconds=20.0)
    assert shape["stop"] == "width"
    assert len(quiet(shape)) == 10
    assert shape["seconds"] < 20


def test_a_comparison_goes_on_until_its_interval_is_narrow_and_no_longer() -> None:
    draw = random.Random(1)
    jumpy = takes(*(draw.choice([0.001, 0.003]) for _ in range(5000)))
    goal = {"width": 0.6, "comparison_seconds": 30.0}

    def went_on() -> bool:
        shape, _ = race(jumpy, takes(0.002), pairs=10, min_seconds=0.001, min_calls=10, **goal)
        kept = quiet(shape)
        assert shape["stop"] == "width"
        assert width(shape, kept) <= 0.6
        for count in range(10, len(kept), 10):
            assert width(shape, kept[:count]) > 0.6
        # which pairs count depends on other programs: the first ten may happen to be alike
        return len(kept) > 10

    needs_quiet(went_on)


def test_a_comparison_whose_interval_stays_wide_stops_at_its_time_limit() -> None:
    shape, _ = race(takes(0.001), takes(0.002), width=1e-9, comparison_seconds=0.7)
    assert shape["stop"] == "time limit"
    assert 0.7 <= shape["seconds"] < 5
    assert len(shape["pairs"]) > PLAN["pairs"]


def test_warm_up_counts_towards_the_time_limit_of_the_comparison() -> None:
    slow_start = {"warmup_calls": 5, "comparison_seconds": 0.5}
    shape, _ = race(takes(*[0.1] * 5, 0.001), takes(0.001), **slow_start)
    assert shape["stop"] == "time limit"
    assert len(shape["pairs"]) == PLAN["pairs"]


@pytest.mark.parametrize(("calls", "pairs"), [(100, 20), (7, 20), (33, 20), (100, 7), (1, 2)])
def test_a_fixed_protocol_makes_exactly_its_calls_of_each(calls: int, pairs: int) -> None:
    fixed = {"calls": calls, "warmup_calls": 20, "pairs": pairs}
    others = {"min_seconds": 60.0, "min_calls": 10**6, "comparison_seconds": 0.0, "width": 1e9}
    shape, journals = race(takes(0.0005), takes(0.001), **fixed, **others)
    assert shape["stop"] == "calls"
    assert len(shape["pairs"]) == min(calls, pairs)
    for name, journal in zip(("blocks_s", "baseline_blocks_s"), journals, strict=True):
        sizes = [len(block) for block in shape[name]]
        assert sum(sizes) == calls
        assert max(sizes) - min(sizes) <= 1
        assert [entry["calls"] for entry in journal] == [20, *sizes]


def test_a_fixed_protocol_keeps_its_calls_also_when_all_of_them_were_disturbed() -> None:
    with busy_child(ONE):
        shape, _ = race(takes(0.005), takes(0.005), calls=20, comparison_seconds=20.0)
    assert len(flat(shape["blocks_s"])) == len(flat(shape["baseline_blocks_s"])) == 20
    assert shape["stop"] == "calls"


def test_with_fixed_calls_warm_up_is_as_long_as_without_them() -> None:
    cold = [0.03] * 4 + [0.001]
    fixed = {"calls": 20, "warmup_calls": None, "warmup_seconds": 2.0, "min_seconds": 1.0}
    shape, (own, _) = race(takes(*cold), takes(0.001), **fixed)
    assert own[0]["calls"] > 4
    assert max(flat(shape["blocks_s"])) < 0.03


def test_the_sizes_of_blocks_make_up_the_minima() -> None:
    seconds, counts = block_sizes({**PLAN, "pairs": 20, "min_seconds": 1.0, "min_calls": 50})
    assert (20 * seconds, counts) == (1.0, [3])
    seconds, counts = block_sizes({**PLAN, "pairs": 20, "calls": 33})
    assert (seconds, sorted(counts, reverse=True)) == (0.0, [2] * 13 + [1] * 7)


@pytest.mark.parametrize(
    "changes",
    [
        {"min_calls": 10**6},
        {"min_seconds": 10**6, "warmup_calls": 2},
        {"calls": 10**6},
        {"warmup_calls": 10**6},
        {"warmup_calls": None, "warmup_seconds": 10**6},
        {"comparison_seconds": 10**6},
    ],
    ids=["calls", "seconds", "fixed", "warm-up", "long-warm-up", "comparison"],
)
def test_max_seconds_beats_everything_else(changes: dict[str, Any]) -> None:
    began = time.monotonic()
    failed = fails(never_stable(), never_stable(), max_seconds=0.6, **changes)
    assert time.monotonic() - began < 8
    assert failed.reason.startswith(f"{failed.role}too slow (")
    assert not failed.transient


@pytest.mark.parametrize("role", ["", "baseline "], ids=["own", "baseline"])
def test_the_engine_that_is_too_slow_is_the_one_that_is_named(role: str) -> None:
    runs = [takes(0.05), takes(0.0001)]
    failed = fails(*(runs if role == "" else runs[::-1]), max_seconds=0.6, calls=40)
    assert failed.reason.startswith(f"{role}too slow (")
    assert (failed.role, failed.transient) == (role, False)


def test_too_slow_says_how_many_calls_were_made_in_how_many_seconds() -> None:
    failed = fails(takes(0.5), takes(0.001), warmup_calls=1, max_seconds=1.7)
    # one of warm-up, four of blocks with one lead-in each at the most
    assert failed.reason in ("too slow (4 calls in 2 s)", "too slow (3 calls in 2 s)")


def test_each_engine_has_its_max_seconds_for_itself() -> None:
    both = {"calls": 30, "pairs": 3, "max_seconds": 0.9}
    shape, journals = race(takes(0.02), takes(0.02), **both)
    spent = [sum(entry["ended"] - entry["began"] for entry in one) for one in journals]
    assert sum(spent) > 0.9
    assert shape["stop"] == "calls"


def hangs(after: int) -> Run:
    calls = itertools.count()
    return lambda _: time.sleep(600) if next(calls) >= after else wait(0.001)


@pytest.mark.parametrize("after", [0, 6], ids=["in-warm-up", "in-a-block"])
@pytest.mark.parametrize("role", ["", "baseline "], ids=["own", "baseline"])
def test_an_engine_that_hangs_is_killed_soon_after_max_seconds(
    monkeypatch: pytest.MonkeyPatch, role: str, after: int
) -> None:
    monkeypatch.setattr(blocks, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(child, "POLL_SECONDS", 0.05)
    runs = [hangs(after), takes(0.001)]
    began = time.monotonic()
    failed = fails(*(runs if role == "" else runs[::-1]), max_seconds=0.8)
    assert 0.8 < time.monotonic() - began < 5
    assert failed.reason == f"{role}timed out after 1 s"
    assert (failed.role, failed.transient) == (role, True)


@pytest.mark.parametrize("role", ["", "baseline "], ids=["own", "baseline"])
def test_an_engine_that_dies_is_named_by_its_role(role: str) -> None:
    calls = itertools.count()

    def dies(_: Any) -> None:
        if next(calls) == 5:
            os.kill(os.getpid(), signal.SIGKILL)

    runs = [dies, takes(0.001)]
    failed = fails(*(runs if role == "" else runs[::-1]))
    assert failed.reason.startswith(f"{role}killed by SIGKILL")
    assert (failed.role, failed.transient) == (role, True)


# blocks of 40 ms, much longer than the slices in which the kernel shares a processor
LONG = {"pairs": 5, "min_seconds": 0.2, "min_calls": 5}


def disturbances(shape: dict[str, Any]) -> list[str | None]:
    return [disturbance(pair, shape["foreign_cores"]) for pair in shape["pairs"]]


def test_pairs_that_another_program_disturbed_do_not_count_and_are_measured_again() -> None:
    def measured_again() -> bool:
        with busy_child(ONE, seconds=1.5):
            shape, _ = race(takes(0.002), **LONG, comparison_seconds=8.0)
        assert disturbances(shape)[0] == "waited"
        assert len(shape["pairs"]) > LONG["pairs"]
        enough = len(quiet(shape)) >= LONG["pairs"]
        assert shape["stop"] == ("minimum" if enough else "time limit")
        return enough

    needs_quiet(measured_again)


def test_a_program_that_never_ends_leaves_too_few_pairs_when_the_time_is_up() -> None:
    with busy_child(ONE):
        shape, _ = race(takes(0.002), takes(0.002), **LONG, comparison_seconds=1.5)
    assert shape["stop"] == "time limit"
    assert len(quiet(shape)) < LONG["pairs"] <= len(shape["pairs"])
    words = noise.why_disturbed(shape, len(quiet(shape)), 3, {})
    assert "their threads waited for a CPU that another program used" in words


def test_pairs_that_do_not_count_are_not_measured_for_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many as are asked for would take it eight seconds."""
    monkeypatch.setattr(paired_blocks, "IN_VAIN_SECONDS", 0.3)
    with busy_child(ONE):
        shape, _ = race(
            *(takes(0.002), takes(0.002)),
            **{"pairs": 100, "min_seconds": 4.0, "min_calls": 100, "comparison_seconds": 0.3},
        )
    assert shape["stop"] == "disturbed"
    assert FEWEST_IN_VAIN <= len(shape["pairs"]) < 60
    assert 2 * len(quiet(shape)) < len(shape["pairs"])
    assert shape["seconds"] >= 0.6


def test_time_that_other_load_took_is_given_back_as_much_as_there_is() -> None:
    """The same comparison beside the same program, which has a second and a half to lose."""
    with busy_child(ONE):
        without, _ = race(takes(0.002), takes(0.002), **LONG, comparison_seconds=1.5)
        began = time.monotonic()
        allowed, _ = race(
            takes(0.002), takes(0.002), **LONG, comparison_seconds=1.5, quiet_seconds=2.0
        )
        elapsed = time.monotonic() - began
    assert allowed["stop"] == without["stop"] == "time limit"
    assert elapsed > allowed["seconds"] + 1.9
    assert allowed["seconds"] == pytest.approx(without["seconds"], abs=1.0)


def test_it_waits_in_the_middle_until_the_other_program_has_ended() -> None:
    def measured() -> bool:
        with busy_child(ONE, seconds=3.0):
            shape, _ = race(
                *(takes(0.002), takes(0.002)), **LONG, comparison_seconds=1.5, quiet_seconds=10.0
            )
        return len(quiet(shape)) >= LONG["pairs"]

    needs_quiet(measured)


def test_the_own_load_of_the_engines_is_not_that_of_others() -> None:
    def few() -> bool:
        shape, _ = race(takes(0.002), takes(0.002), **LONG, comparison_seconds=2.5)
        cores = [one for one in shape["foreign_cores"] if one is not None]
        # own load would be in every window, another program is in some
        return bool(cores) and statistics.median(cores) < 0.3

    needs_quiet(few)


@TWO_PROCESSORS
@pytest.mark.parametrize("victim", [0, 1], ids=["own", "baseline"])
def test_a_pair_is_disturbed_when_either_of_the_two_was(victim: int) -> None:
    processors = [ONE, ONE]
    processors[victim] = ANOTHER
    with busy_child(ANOTHER):
        shape, _ = race(takes(0.002), takes(0.002), processors=tuple(processors), **LONG)
    assert quiet(shape) == []


def test_without_other_load_most_pairs_count() -> None:
    def lost() -> int:
        shape, _ = race(takes(0.002), takes(0.002), **LONG)
        return len(shape["pairs"]) - len(quiet(shape))

    needs_quiet(lambda: lost() <= 2)


def test_what_was_measured_before_is_gone_on_from() -> None:
    """Windows and pairs of the earlier workers are kept as they are, new ones follow."""
    first, _ = race(takes(0.001), takes(0.002), pairs=4)
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Child(Journaled(takes(seconds), ONE), LIMITS))
            for seconds in (0.001, 0.002)
        ]
        for worker in workers:
            worker.ask("load")
        shape = compare(
            workers, 0, {**PLAN, "pairs": 8}, threads=1, machine=machine(), earlier=first
        )
    known = len(first["foreign_cores"])
    assert shape["pairs"][: len(first["pairs"])] == first["pairs"]
    assert shape["foreign_cores"][:known] == first["foreign_cores"]
    assert min(pair["window"] for pair in shape["pairs"][len(first["pairs"]) :]) >= known
    assert len(shape["warmups"]) == 2
    assert shape["seconds"] > first["seconds"]


def test_a_shape_says_how_many_threads_and_cores_were_at_work() -> None:
    shape, _ = race(takes(0.002), takes(0.002), **LONG)
    assert shape["threads_busy"] == 1
    assert 0.1 < shape["cores_used"] < 1.2


def test_two_quiet_engines_leave_each_other_alone() -> None:
    shape, _ = race(takes(0.002), takes(0.002), **LONG)
    assert 0 <= shape["idle_share"] < 0.1


@TWO_PROCESSORS
@pytest.mark.parametrize("spinner", [0, 1], ids=["own", "baseline"])
def test_an_engine_that_spins_while_the_other_is_timed_is_told(spinner: int) -> None:
    started = []

    def spins(_: Any) -> None:
        if not started:
            hash_forever()
            started.append(True)
        time.sleep(0.01)

    runs = [takes(0.002), takes(0.002)]
    runs[spinner] = spins
    shape, _ = race(*runs, processors=(ONE, ANOTHER), **LONG)
    assert shape["idle_share"] > 0.2
    assert any("was not timed used" in one for one in noise.reasons(shape, None))
