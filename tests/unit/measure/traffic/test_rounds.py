"""How many rounds are measured, and which samples an offline test sends."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.traffic.bench import Bench
from tightrope.measure.traffic.progress import Progress
from tightrope.measure.traffic.rounds import FEWEST_BATCHES, MOST_ROUNDS, Rounds, sent_samples
from tightrope.records.traffic_rounds import OFFLINE

Test = Callable[[Bench, int], dict[str, Any]]
PLAN = {"batch": 4, "seconds": 3.0}


def benches(lengths: list[int], quiet_seconds: float = 0.0) -> list[Bench]:
    """Two paddings on no processor, which no other program can use."""
    machine = QuietMachine([], quiet_seconds, sys.__stderr__)
    padded: list[int | None] = [None] * len(lengths)
    return [
        Bench(lambda *_: None, lengths, padded, PLAN, 2, Path("none"), padding, machine)
        for padding in ("fixed", "longest")
    ]


def told(rate: float, foreign_cores: float = 0.0) -> dict[str, Any]:
    """The facts of an offline test that took a second."""
    facts = {"scenario": OFFLINE, "valid": True, "duration_s": 1.0, "samples_per_s": rate}
    return {**facts, "foreign_cores": foreign_cores}


def rounds(test: Test, quiet_seconds: float = 0.0) -> tuple[int, QuietMachine]:
    """The number of rounds, and the machine after them."""
    both = benches([3, 5], quiet_seconds)
    tests = Rounds(OFFLINE, both, Progress(1.0)).run(test)
    assert len(tests) % len(both) == 0
    return len(tests) // len(both), both[0].machine


def test_three_rounds_are_enough_where_the_gain_is_known() -> None:
    number, _ = rounds(lambda bench, _: told(100.0 if bench.name == "fixed" else 150.0))
    assert number == 3


def test_rounds_go_on_until_the_gain_is_known() -> None:
    """The ratio of the first rounds is far off, that of the others is not."""

    def test(bench: Bench, number: int) -> dict[str, Any]:
        noise = (1.05, 0.95)[number % 2] if number <= 2 else 1.0
        return told(100.0 if bench.name == "fixed" else 150.0 * noise)

    number, _ = rounds(test)
    assert 3 < number <= 6


def test_rounds_end_after_twice_the_seconds_per_padding() -> None:
    def test(bench: Bench, number: int) -> dict[str, Any]:
        return told(100.0 if bench.name == "fixed" else 150.0 * (1.5, 0.5)[number % 2])

    # 2 x 3 s for each of the two paddings, whose tests take a second each
    assert rounds(test)[0] == 6


@pytest.mark.parametrize("disturbed", [1, 4])
def test_a_disturbed_round_is_followed_by_another_and_its_time_given_back(disturbed: int) -> None:
    def test(bench: Bench, number: int) -> dict[str, Any]:
        foreign = 0.9 if number <= disturbed and bench.name == "fixed" else MAX_FOREIGN_CORES
        return told(100.0 if bench.name == "fixed" else 150.0, foreign)

    number, machine = rounds(test, quiet_seconds=60.0)
    assert number == disturbed + 3
    assert machine.lost_s == pytest.approx(disturbed, abs=0.5)


@pytest.mark.parametrize(("quiet_seconds", "expected"), [(0.0, 3), (2.0, 3), (5.5, 6)])
def test_where_all_rounds_are_disturbed_they_end_with_the_time_that_may_be_lost(
    quiet_seconds: float, expected: int
) -> None:
    number, _ = rounds(
        lambda bench, _: told(100.0, 0.9 if bench.name == "fixed" else 0.0), quiet_seconds
    )
    assert number == expected < MOST_ROUNDS


def test_some_samples_have_lengths_in_proportion_and_fill_some_batches() -> None:
    lengths = list(np.random.default_rng(0).integers(1, 100, size=1000))
    (bench, _) = benches(lengths)
    sent = sent_samples(bench, 200)
    assert len(sent) == 200 and sent == sorted(set(sent))
    mean = np.mean([lengths[index] for index in sent])
    assert mean == pytest.approx(np.mean(lengths), rel=0.02)
    assert len(sent_samples(bench, 1)) == FEWEST_BATCHES * PLAN["batch"]
    assert sent_samples(bench, 10**6) == list(range(1000))
