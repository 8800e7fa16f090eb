"""Who takes part in a race, in which heats, and what is recorded."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from latency_records import (
    PLAN,
    SHAPES,
    latency_record,
    race_settings,
    timing_settings_of_races,
    write_records,
)
from played_engines import Played, dies, fails, nowhere
from raced import race_record
from tightrope.decide.finalists import Finalists, Measured
from tightrope.jobs.child import Limits
from tightrope.measure.race import race_finalists, run_heats
from tightrope.plan.disturbed_records import is_disturbed
from tightrope.records.race import RacedShape, RaceRecord
from tiny_model import name_variant

FLOAT, INT8 = name_variant("onnxruntime", "fp32"), name_variant("onnxruntime", "int8")


@pytest.fixture
def raced(tiny, built, tmp_path) -> Callable[..., RaceRecord]:
    """The race of int8 that was so many times as fast as the baseline in float before."""

    def raced(speedup: float, *, accept: bool = False, **int8: Any) -> RaceRecord:
        engines = [built(variant) for variant in (FLOAT, INT8)]
        float_ = write_records(tmp_path, str(FLOAT), engines[0], 0.01)
        quantized = write_records(tmp_path, str(INT8), engines[1], 0.01 / speedup, **int8)
        latencies, accuracies = map(list, zip(float_, quantized, strict=True))
        files = {"engines": engines, "latencies": latencies, "accuracies": accuracies}
        files |= {"checkpoint": tiny.checkpoint, "data": tiny.split("timing")}
        settings = race_settings(str(FLOAT), accept_disturbed=accept)
        target, timing = tmp_path / "cpu.race.json", timing_settings_of_races()
        race_finalists(target, timing, settings, model="m", device="cpu", **files)
        return RaceRecord.read(target)

    return raced


def timed(shape: RacedShape) -> set[str]:
    """The variants of which a block was timed."""
    return {name for name, blocks in shape.blocks_s.items() if any(blocks)}


def test_failed_ones_take_no_part_nor_disturbed_ones_that_are_not_accepted(raced, tmp_path) -> None:
    for changes in ({"status": "failed", "reason": "too slow"}, {"disturbed": 10}):
        (heat,) = raced(1.0, **changes).heats
        for shape in heat.shapes:
            assert shape.contenders == [str(FLOAT)]
            # a single finalist wins without a process
            assert (timed(shape), shape.loads, shape.stop) == (set(), [], None)
        assert not is_disturbed(tmp_path / "cpu.race.json")
    (heat,) = raced(9.0, disturbed=10, accept=True).heats
    assert [shape.contenders for shape in heat.shapes] == [[str(INT8)]] * 2


@pytest.fixture
def heats(tmp_path: Path) -> Callable[..., tuple[RaceRecord, str]]:
    """The record of the heats of three engines of 3 GB each, and what is said; `b` is slow."""

    def heats(finalists, free, always: Sequence[str] = (), **more: Any) -> tuple[RaceRecord, str]:
        times, journal = {"a": 0.002, "b": 0.004, "c": 0.002}, tmp_path / "journal"
        timed = {
            name: Played(journal, name, one, **more.get(name, {})) for name, one in times.items()
        }
        terminal = io.StringIO()
        record = race_record(plan=PLAN, decision={"seconds": 0.0, "equal_within": 0.02})
        measured = {
            name: Measured(Path(name), latency_record(name, peak_rss_bytes=3 * 10**9), None, 1)  # type: ignore[arg-type]
            for name in times
        }
        limits, machine = Limits(memory_bytes=free, seconds=120), nowhere(terminal=terminal)
        settings = timing_settings_of_races(limits, SHAPES[:1])
        run_heats(record, timed, measured, [finalists], machine, settings, always=always)
        return record, terminal.getvalue()

    return heats


def test_those_that_do_not_fit_the_memory_together_race_in_heats(heats: Any) -> None:
    for free, expected in (
        (9e9, [["a", "b", "c"]]),
        # who did not win its heat is not in the next
        (6.5e9, [["a", "b"], ["a", "c"]]),
        # the next one always runs
        (1e9, [["a"], ["a", "b"], ["a", "c"]]),
    ):
        record, said = heats(Finalists(["a", "b", "c"], []), free)
        assert [sorted(one.shapes[0].blocks_s) for one in record.heats] == expected
        first = len(expected[0])
        more = f"m: {first} finalists fit in memory together, {3 - first} more follow\n"
        assert said.startswith(more if first < 3 else "")
    # of the pairs those that fit together take part
    record, _ = heats(Finalists(["a"], [("b", "a"), ("c", "b")]), 6.5e9)
    assert record.heats[0].shapes[0].pairs == [("b", "a")]
    # those of a family's root run in each heat, however slow they are
    record, _ = heats(Finalists(["a", "b", "c"], []), 6.5e9, ["b"])
    assert [sorted(one.shapes[0].blocks_s) for one in record.heats] == [["a", "b"], ["b", "c"]]
    assert len(heats(Finalists(["a", "b"], []), 6.5e9, ["a", "b"])[0].heats) == 1
    # one that dies is left out with its reason
    dying = {"before": fails("block", 1, dies)}
    record, _ = heats(Finalists(["a", "b", "c"], []), 9e9, c=dying)
    assert list(record.left_out) == ["c"]
    assert record.left_out["c"].startswith("killed by SIGKILL")
