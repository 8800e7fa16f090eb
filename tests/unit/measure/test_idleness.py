"""The first call after a pause: the order of the pauses, and what is kept of calls."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

from played_engines import Played, nowhere
from raced import HOST
from tightrope.jobs.child import Child
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.measure import idleness
from tightrope.records.idleness import IdlenessRecord, after
from tiny_model import LIMITS


class Paused(Played, idleness.PausedEngine):
    """A played engine whose calls after a pause are real."""


def measured(journal, pauses, *, max_seconds=30, lost=0, used_s=0.0) -> IdlenessRecord:
    record = IdlenessRecord(
        **{"model": "m", "variant": "cpu-onnxruntime-fp32", "host": HOST, "libraries": {}},
        **{"threads": 1, "processors": [], "shape": {"batch": 1}},
        plan={"pauses": pauses, "max_seconds": max_seconds},
    )
    machine = nowhere(lost)
    engine = Paused(journal, "", 0.001, run=lambda _: None, used_s=used_s)
    with Child(engine, LIMITS) as worker:
        worker.ask("load")
        idleness.measure_calls(record, worker, machine)
    record.lost_s = machine.lost_s
    return record


def test_pauses_are_spread_over_all_of_the_default_time_and_long_ones_fewer() -> None:
    calls = [idleness.calls_after(pause) for pause in (0.001, 0.1, 1, 3, 10, 60)]
    assert calls == [30, 30, 15, 10, 7, 7]
    planned = list(idleness.schedule([0.1, 1, 10]))
    assert planned == list(idleness.schedule([0.1, 1, 10]))
    assert Counter(planned) == {0.1: 30, 1: 15, 10: 7}
    assert {(1, 10), (10, 1)} <= set(pairwise(planned)), "each round in an order of its own"
    # a block of 0.1 s and its end come before each
    assert sum(planned) + 0.2 * len(planned) < 120
    for pause in (0.1, 1, 10):
        places = [place for place, one in enumerate(planned) if one == pause]
        half = len(planned) / 2
        assert abs(sum(place < half for place in places) - len(places) / 2) <= 1


def test_late_calls_are_left_out_and_disturbed_ones_repeated(tmp_path: Path) -> None:
    record = measured(tmp_path / "journal", [0.005, 0.25], max_seconds=0.6)
    assert len(after(record, 0.25)) < 3 and len(record.calls) < 45
    # while time may be lost; the engine uses ever less, as if other programs used more
    lost = 3 * (idleness.BLOCK_S + 0.05)
    record = measured(tmp_path / "journal", [0.05], max_seconds=0.3, lost=lost, used_s=-1e6)
    assert record.lost_s >= lost
    assert min(call["foreign_cores"] for call in record.calls) > MAX_FOREIGN_CORES
    assert len(record.calls) > 1
    assert all(call["paused_s"] >= call["pause_s"] for call in record.calls)
