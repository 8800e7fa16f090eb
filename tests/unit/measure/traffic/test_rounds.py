"""How many rounds are measured, and which samples an offline test sends."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from played_engines import nowhere
from tightrope.inputs.texts import text_arrays
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.measure.traffic_loadgen import Bench
from tightrope.measure.traffic_scenarios import FEWEST_BATCHES, Progress, Rounds, sent_samples
from tightrope.records.traffic_rounds import OFFLINE

PLAN = {"batch": 4, "seconds": 3.0}


def benches(lengths: list[int], quiet_seconds: float = 0.0) -> list[Bench]:
    """Two paddings on no processor, which no other program can use."""
    machine = nowhere(quiet_seconds, sys.__stderr__)
    rows = [text_arrays(np.arange(length)) for length in lengths]
    padded: list[int | None] = [None] * len(rows)
    return [
        Bench(lambda _: None, rows, padded, PLAN, 2, Path("none"), padding, machine)
        for padding in ("fixed", "longest")
    ]


LOUD, WILD = 0.9, (1.5, 0.5) * 99
NEARLY = (0.95, 1.05, *[1.0] * 99)


@pytest.mark.parametrize(
    ("gains", "foreign", "quiet_seconds", "expected", "lost"),
    [
        # three rounds are enough where the gain is known
        ((1.0,) * 99, [], 0.0, [3], 0),
        # they go on until it is: the ratio of the first rounds is far off
        (NEARLY, [], 0.0, [4, 5, 6], 0),
        # until twice the 3 s per padding, whose tests take a second each
        (WILD, [], 0.0, [6], 0),
        # a disturbed round is followed by another and its time given back
        ((1.0,) * 99, [LOUD], 60.0, [4], 1),
        ((1.0,) * 99, [LOUD] * 4, 60.0, [7], 4),
        (WILD, [LOUD] * 2, 60.0, [7], 2),
        # while time may be lost
        ((1.0,) * 99, [LOUD] * 99, 0.0, [3], 3),
        ((1.0,) * 99, [LOUD] * 99, 5.5, [6], 6),
    ],
)
def test_rounds_go_on_until_the_gain_is_known_or_their_time_is_over(
    gains: tuple[float, ...],
    foreign: list[float],
    quiet_seconds: float,
    expected: list[int],
    lost: float,
) -> None:
    both = benches([3, 5], quiet_seconds)

    def test(bench: Bench, number: int) -> dict[str, Any]:
        """The facts of an offline test that took a second."""
        fixed = bench.name == "fixed"
        cores = foreign[number - 1] if fixed and number <= len(foreign) else MAX_FOREIGN_CORES
        rate = 100.0 if fixed else 150.0 * gains[number - 1]
        facts = {"scenario": OFFLINE, "valid": True, "duration_s": 1.0, "samples_per_s": rate}
        return {**facts, "foreign_cores": cores}

    tests = Rounds(OFFLINE, both, Progress("serving", 1.0)).run(test)
    assert len(tests) / len(both) in expected
    assert both[0].machine.lost_s == pytest.approx(lost, abs=0.5)


def test_some_samples_have_lengths_in_proportion_and_fill_some_batches() -> None:
    lengths = list(np.random.default_rng(0).integers(1, 100, size=1000))
    (bench, _) = benches(lengths)
    sent = sent_samples(bench, 200)
    assert len(sent) == 200 and sent == sorted(set(sent))
    mean = np.mean([lengths[index] for index in sent])
    assert mean == pytest.approx(np.mean(lengths), rel=0.02)
    assert len(sent_samples(bench, 1)) == FEWEST_BATCHES * PLAN["batch"]
    assert sent_samples(bench, 10**6) == list(range(1000))
