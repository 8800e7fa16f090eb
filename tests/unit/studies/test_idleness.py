"""The first call after a pause: the order of the pauses, what counts, and what the page says."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from played_engines import Played, nowhere
from study_records import entry_of, study_page, study_record
from tightrope.jobs.child import Child
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.measure.study import EngineBench
from tightrope.report.style.numbers import TIMES
from tightrope.studies import idleness
from tightrope.studies.idleness import FEWEST, Call, Settings
from tiny_model import LIMITS

PAUSES = {"pauses": [1, 0.1], "max_seconds": 120}
SHAPE = {"batch": 1, "sequence": 64}


class PlayedBench(EngineBench):
    """A bench whose only engine is played; its calls after a pause are real."""

    def __init__(self, engine: Played, lost: float) -> None:
        super().__init__(None, None, [], nowhere(lost))  # type: ignore[arg-type]
        self.engine = engine

    @contextmanager
    def engines(self, shapes: Any, pins: Any = None) -> Iterator[list[Child]]:
        with Child(self.engine, LIMITS) as worker:
            worker.ask("load")
            yield [worker]


def measured(journal: Path, pauses: Any, *, max_seconds=30.0, lost=0.0, used_s=0.0) -> Any:
    """The calls, and the seconds that were lost."""
    engine = Played(journal, "", 0.001, run=lambda _: None, used_s=used_s)
    bench = PlayedBench(engine, lost)
    settings = Settings(pauses=tuple(pauses), max_seconds=max_seconds)
    return [*idleness.measure(bench, settings)], bench.machine.lost_s


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
    calls, _ = measured(tmp_path / "journal", [0.005, 0.25], max_seconds=0.6)
    assert sum(one.pause_s == 0.25 for one in calls) < 3 and len(calls) < 45
    # while time may be lost; the engine uses ever less, as if other programs used more
    most = 3 * (idleness.BLOCK_S + 0.05)
    calls, lost = measured(tmp_path / "j", [0.05], max_seconds=0.3, lost=most, used_s=-1e6)
    assert lost >= most
    assert min(one.foreign_cores for one in calls) > MAX_FOREIGN_CORES
    assert len(calls) > 1
    assert all(one.paused_s >= one.pause_s for one in calls)


def calls(pause: float, ratio: float, count: int = 9, *, foreign: float = 0.0) -> list[Call]:
    times = [0.01 * ratio * (1 + 0.01 * (number % 3)) for number in range(count)]
    return [Call(pause, pause, [0.01] * 3, seconds, foreign) for seconds in times]


def recorded(*made: list[Call], **changes: Any) -> Any:
    every = [call for some in made for call in some]
    return study_record("idleness", every, PAUSES, **{"shape": SHAPE, **changes})


def idle(*made: list[Call], accept: bool = False, **changes: Any) -> Any:
    """The rows of both pauses, the short one first."""
    return entry_of(recorded(*made, **changes), accept_disturbed=accept).rows


def test_each_pause_has_its_first_call_and_what_it_is_over_the_block_before() -> None:
    short, long = idle(calls(1, 1.5), calls(0.1, 1.02))
    assert (short["pause_s"], long["pause_s"]) == (0.1, 1)
    assert long["first_call_s"] == pytest.approx(0.01515)
    assert long["slowdown"]["value"] == pytest.approx(1.515, rel=0.01)
    assert 1.10 < long["slowdown"]["low"] < long["slowdown"]["high"]
    assert (long["calls"], long["disturbed_calls"], long["reason"]) == (9, 0, None)
    # in a machine that changes its speed
    twice = [Call(1, 1, [0.02] * 3, 0.024, 0.0) for _ in range(4)]
    _, long = idle(calls(1, 1.2 / 1.01, 4), twice)
    assert long["slowdown"]["value"] == pytest.approx(1.2, rel=0.02)
    _, long = idle(calls(1, 1.0, 14), calls(1, 30, 1))
    assert 1.0 < long["slowdown"]["value"] < long["slowdown"]["high"] < 1.05, "one outlier"
    # disturbed calls do not count where enough are left
    _, long = idle(calls(1, 1.5), calls(1, 9.0, 3, foreign=0.5))
    assert (long["calls"], long["disturbed_calls"], long["disturbed"]) == (9, 3, None)
    assert long["slowdown"]["value"] == pytest.approx(1.515, rel=0.01)


def test_with_too_few_undisturbed_calls_there_is_no_number_unless_it_is_accepted() -> None:
    made = calls(1, 1.5, FEWEST - 1), calls(1, 1.5, 3, foreign=0.5)
    _, long = idle(*made, busiest={"cc1": 0.5})
    assert long["first_call_s"] is long["slowdown"] is None
    assert long["disturbed"].startswith("other programs or the hypervisor used up to 0.5 cores")
    assert "pauses of 1 s; the busiest: cc1" in long["disturbed"]
    assert not long["provisional"]
    _, accepted = idle(*made, accept=True)
    assert (accepted["provisional"], accepted["calls"]) == (True, FEWEST + 2)
    assert accepted["slowdown"]["value"] == pytest.approx(1.515, rel=0.01)
    _, long = idle(calls(0.1, 1.0), calls(1, 1.5, 2))
    assert long["slowdown"] is long["disturbed"] is None
    assert long["reason"] == "only 2 calls within max_seconds = 120; an interval needs 5"
    failed = entry_of(recorded(status="failed", reason="not built: no room"))
    assert (failed.status, failed.reason, failed.rows) == (*("failed", "not built: no room"), [])


def test_only_pauses_that_matter_are_told() -> None:
    slow = entry_of(recorded(calls(0.1, 1.02), calls(1, 1.5)))
    (words,) = slow.words
    assert words.startswith("after 1 s without a call the next one takes 1.51 times (1.50 to 1.53)")
    assert words.endswith("as long as one back to back: 15.2 ms")
    # one whose interval reaches ten percent does not matter, nor a provisional one
    times = zip(calls(1, 1, 6), [0.011, 0.02] * 3, strict=True)
    wide = [Call(1, 1, one.block_s, seconds, 0.0) for one, seconds in times]
    lost = recorded(calls(1, 1.5, 4), calls(1, 1.5, 3, foreign=0.5))
    assert entry_of(recorded(wide)).words == []
    assert entry_of(lost, accept_disturbed=True).words == []


def test_the_page_has_the_table_and_a_remark_where_it_matters() -> None:
    lost = calls(0.1, 1.02), calls(1, 1.5, 2), calls(1, 1.5, 9, foreign=0.5)
    found = study_page(
        recorded(calls(0.1, 1.02), calls(1, 1.5)),
        recorded(*lost[:2], calls(1, 1.5, 4, foreign=0.5), variant="cpu-openvino-bf16"),
        recorded(status="failed", reason="no <room>"),
    )
    section = found.section("idleness")
    text = found.text.replace("\xa0", " ")
    assert f"64 tokens 10.0 1 s 15.2 1.51{TIMES} 1.50 to 1.53 slower 9" in text
    assert section.count('<span class="verdict slower">') == 1
    assert section.count("<tr>") == 5
    assert "in pauses of 1 s" in section and "1 row of idleness" in found.html
    assert "no &lt;room&gt;" in section
    assert '<a href="#idleness">After a pause</a>' in found.html
    not_run = found.section("not-run")
    assert '#idleness">First call after a pause</a>: <span class="bad">1' in not_run
