"""Throughput by instances, threads and batch: what is tried, what counts, what the page says."""

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from colour_vision import contrast
from drawn_charts import drawn
from msgspec.structs import replace
from report_pages import summary_of
from study_records import entry_of, study_page, study_record
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.report.sections.studies import study_sections
from tightrope.report.style.palette import HEAT, INKS
from tightrope.studies import throughput
from tightrope.studies.instances import (
    BLOCKS,
    CALLS_PER_BLOCK,
    Division,
    divisions,
    shares,
    window_seconds,
)
from tightrope.studies.throughput import TOO_SLOW, Point, Settings

BATCHES = {"batches": [1, 4], "p99_ms": None}


def point(
    instances: int, threads: int, batch: int, call_s: float, *, foreign=0.0, calls=9, blocks=None
) -> Point:
    """A point whose blocks differ by a percent, all calls of a block alike."""
    own = [[call_s * (1 + 0.01 * (number % 3))] * calls for number in range(BLOCKS)]
    return Point(
        **{"instances": instances, "threads": threads, "batch": batch, "seconds": 2.0},
        blocks_s=blocks or [own] * instances,
        **dict.fromkeys(("waited_s", "late_s"), [0.0] * instances),
        foreign_cores=foreign,
        peak_rss_bytes=1000 * instances,
    )


TIMES = {(1, 2, 1): 0.010, (1, 2, 4): 0.030, (2, 1, 1): 0.016, (2, 1, 4): 0.050}
POINTS = [point(*one, seconds) for one, seconds in TIMES.items()]
UNEVEN = [[[0.01], [], [0.01], [], [], [], [], [], [], []]]
LOST = Point(instances=2, threads=1, batch=1, reason="out of <memory>")
SKIPPED = Point(instances=4, threads=1, batch=1, reason="needs 4 cores, there are 2", skipped=True)


def recorded(points: list[Point], p99_ms: Any = None, **changes: Any) -> Any:
    return study_record("throughput", points, {**BATCHES, "p99_ms": p99_ms}, **changes)


def rated(points: list[Point], p99_ms: Any = None, *, accept: bool = False, **changes: Any) -> Any:
    return entry_of(recorded(points, p99_ms, **changes), accept_disturbed=accept)


def marked(entry: Any, mark: str) -> Any:
    """Instances, threads and batch of the row with the mark, None without one."""
    found = [one for one in entry.rows if one[mark]]
    places = [(one["instances"], one["threads"], one["batch"]) for one in found]
    assert len(places) <= 1
    return places[0] if places else None


def test_auto_divides_all_cores_among_every_divisor() -> None:
    found = divisions("auto", "auto", cores=12)
    assert found == [(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]
    assert divisions([2, 4], "auto", cores=4) == [(1, 4), (2, 2), (4, 1)]
    assert divisions([1, 2], [1, 2], cores=4) == [(1, 4), (1, 2), (1, 1), (2, 2), (2, 1)]
    # no two instances share a processor
    assert shares(Division(2, 2), [0, 2, 4, 6, 8]) == [[0, 2], [4, 6]]
    assert (8, 1) in divisions([8], "auto", cores=4)


def skipped(points: Any, *place: int, cores: int = 4, **settings: Any) -> str | None:
    """Why a point of this place is not measured after those."""
    bench: Any = SimpleNamespace(processors=[*range(cores)], threads=cores, spent_s=0.0)
    *division, batch = place
    asked = Settings(**settings)
    return throughput.why_skipped(bench, asked, Division(*division), batch, points)


def test_points_that_cannot_win_are_skipped_with_the_reason() -> None:
    assert skipped([], 3, 2, 1) == "needs 6 cores, there are 4"
    assert skipped([], 2, 2, 1) is None
    slower = [point(1, 1, 1, 0.01), point(2, 1, 1, 0.0222)]
    why = "slower already: 2 instances 89.35 samples/s, 1 99.18"
    assert skipped(slower, 4, 1, 1) == why
    # another batch, only one smaller number
    assert skipped(slower, 4, 1, 2) is skipped(slower, 2, 1, 1) is None
    # the intervals overlap, and of each number the best threads count
    assert skipped([point(1, 1, 1, 0.01), point(2, 1, 1, 0.0201)], 4, 1, 1) is None
    best = [point(1, 1, 1, 0.01), point(2, 1, 1, 0.04), point(2, 2, 1, 0.015)]
    assert skipped(best, 4, 1, 1) is None
    # where fewer failed at that batch
    broken = [LOST, Point(instances=2, threads=1, batch=4, reason="no", skipped=True)]
    assert skipped(broken, 4, 1, 1) == "failed with 2 instances: out of <memory>"
    assert skipped(broken, 4, 1, 4) is skipped(broken, 1, 1, 1) is None


def test_larger_batches_are_skipped_once_a_percentile_is_over_the_bound() -> None:
    slow = [point(2, 1, 4, 0.03, calls=70)]
    over = "p99 is 30.6 ms at batch 4 already, over the bound of 25 ms"
    assert skipped(slow, 2, 1, 16, p99_ms=25) == over
    # no larger batch, another division, within the bound, no bound
    places = ((2, 1, 4), (1, 1, 16), (2, 2, 16))
    assert {skipped(slow, *place, p99_ms=25) for place in places} == {None}
    assert skipped(slow, 2, 1, 16, p99_ms=31) is skipped(slow, 2, 1, 16) is None
    # too few calls for p99
    few = [point(2, 1, 4, 0.05)]
    over = "p50 is 50.5 ms at batch 4 already, over the bound of 40 ms"
    assert skipped(few, 2, 1, 16, p99_ms=40) == over
    assert skipped(few, 2, 1, 16, p99_ms=60) is None


def test_a_window_is_longer_for_slow_calls_and_for_a_percentile() -> None:
    assert window_seconds(0.001, 1, seconds=2.0, calls=0) == 2.0
    assert window_seconds(1.0, 1, seconds=2.0, calls=0) == BLOCKS * CALLS_PER_BLOCK
    assert window_seconds(0.02, 2, seconds=2.0, calls=1000) == 10.0


def test_the_best_point_is_compared_with_one_instance_at_its_own_best_batch() -> None:
    found = rated(POINTS)
    assert (marked(found, "best"), marked(found, "single")) == ((2, 1, 4), (1, 2, 4))
    best = found.rows[3]
    rate, gain = best["samples_per_s"], best["gain"]
    assert rate["value"] == pytest.approx(2 * 4 / 0.050, rel=0.02)
    assert rate["low"] < rate["value"] < rate["high"]
    assert (best["calls"], best["p99_s"]) == (180, None)
    assert gain["value"] == pytest.approx(160 / (4 / 0.030), rel=0.02)
    assert gain["low"] < gain["value"] < gain["high"]
    assert marked(found, "best_within_bound") is None, "there is no bound"
    found = rated([*POINTS[:2], point(2, 1, 4, 0.5)])
    assert marked(found, "best") == marked(found, "single") == (1, 2, 4)
    assert not any(one["gain"] for one in found.rows)
    # rates of instances add up in the blocks in which each ended a call
    two = [[[0.1, 0.1]] * 4 + [[0.3]], [[0.2]] * 4 + [[]]]
    (row,) = rated([point(2, 1, 4, 0.05, blocks=two)]).rows
    assert row["samples_per_s"]["value"] == pytest.approx(60)
    # no rate is below zero, however wide its interval is
    seconds = [0.001, 0.001, 0.001, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0]
    (row,) = rated([point(1, 2, 1, 0.01, blocks=[[[one] * 9 for one in seconds]])]).rows
    rate = row["samples_per_s"]
    assert rate["low"] == 0.0 < rate["value"] < rate["high"]


def test_only_a_point_with_a_known_p99_is_within_the_bound() -> None:
    points = [point(1, 2, 1, 0.010, calls=70), point(1, 2, 4, 0.030, calls=70), POINTS[3]]
    found = rated(points, p99_ms=20)
    assert (marked(found, "best"), marked(found, "best_within_bound")) == ((2, 1, 4), (1, 2, 1))
    assert (found.rows[0]["bound_s"], found.rows[0]["p99_s"]) == (0.02, 0.0102)
    wide = rated(points, p99_ms=1000)
    assert marked(wide, "best_within_bound") == (1, 2, 4), "the best has too few calls"


def test_a_disturbed_point_has_no_numbers_unless_they_are_accepted() -> None:
    points = [POINTS[0], point(2, 1, 1, 0.001, foreign=MAX_FOREIGN_CORES + 0.5)]
    found = rated(points, busiest={"java": 0.6})
    assert marked(found, "best") == (1, 2, 1)
    lost = found.rows[1]
    assert lost["samples_per_s"] is None and not lost["provisional"]
    assert "used up to 0.6 cores" in lost["disturbed"] and "java" in lost["disturbed"]
    accepted = rated(points, accept=True)
    assert marked(accepted, "best") == (2, 1, 1) and accepted.rows[1]["provisional"]
    assert "It is provisional: other programs" in " ".join(accepted.words)
    # one without calls is no failure of its own
    starved = point(1, 2, 1, 0.01, blocks=UNEVEN, foreign=MAX_FOREIGN_CORES + 0.5)
    (row,) = rated([starved], accept=True).rows
    assert row["disturbed"] and row["samples_per_s"] is None
    assert (row["reason"], row["provisional"]) == (None, False)


def test_points_without_numbers_keep_their_reasons() -> None:
    found = rated([point(1, 2, 1, 0.01, blocks=UNEVEN), LOST, SKIPPED])
    told = [(one["reason"], one["skipped"]) for one in found.rows]
    assert told == [(TOO_SLOW, False), (LOST.reason, False), (SKIPPED.reason, True)]
    assert (marked(found, "best"), marked(found, "single")) == (None, None)
    assert found.words == ["No point has a number."]


@pytest.mark.parametrize(
    ("p99_ms", "points", "told"),
    [
        (None, POINTS, "Best: 2 instances, 1 thread each, at batch 4: 158.7 samples/s (156.8 to"),
        (None, POINTS, "1.20 times (1.19 to 1.21) that of one instance with all 2 threads at its"),
        (None, POINTS[:2], "1 instance, 2 threads, at batch 4: 132.2 samples/s"),
        (None, POINTS[:2], "no other division of the cores gave more"),
        (None, POINTS[2:], "one instance with all threads has no number to compare it with"),
        (20, POINTS, "No point is known to have p99 within 20 ms."),
        (40, [POINTS[0], point(1, 2, 4, 0.030, calls=70)], "Its p99 is within 40 ms."),
        (
            *(20, [point(1, 2, 1, 0.010, calls=70), POINTS[3]]),
            "With p99 within 20 ms: 1 instance, 2 threads, at batch 1: 99.18 samples/s",
        ),
    ],
)
def test_sentences_say_what_is_best_and_by_what_factor(p99_ms, points, told) -> None:
    assert told in " ".join(rated(points, p99_ms).words)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_cell_has_its_number_or_a_word(scheme: str) -> None:
    exact = point(1, 2, 1, 0.010, calls=70)
    entry = replace(rated([exact, *POINTS[1:], LOST, SKIPPED]), host="h")
    sections = study_sections(summary_of({"studies": {"throughput": [entry]}}), {})
    (figure,) = sections[0]["models"][0]["figures"]
    assert not re.search(r"#[0-9a-f]{6}", json.dumps(figure["chart"]))
    svg = drawn(figure["chart"], scheme)
    for text in ("159", "132", "skipped", "failed", "2 instances, 1 thread each"):
        assert text in svg
    marks = figure["chart"]["data"]["values"]
    assert [mark["below"].replace("\xa0", " ") for mark in marks[:2]] == ["p99 10.2 ms", ""]
    assert [mark["best"] for mark in marks] == [False, False, False, True, False, False]
    # each cell is wide enough for its text, and the chart then scrolls
    assert figure["least_width"] == 165 + 2 * 96
    for colour in HEAT[scheme == "dark"]:
        assert contrast(INKS[scheme]["text"], colour) >= 4.5


def test_the_page_has_the_chart_its_table_and_what_failed() -> None:
    images = {"variant": "cpu-openvino-bf16", "shape": {"height": 32, "width": 32}}
    found = study_page(
        recorded([*POINTS, LOST, SKIPPED]),
        recorded([point(1, 2, 1, 0.01, foreign=2.0)], **images),
        recorded([], variant="cpu-tvm-fp32", status="failed", reason="killed <b>by</b> SIGKILL"),
    )
    section = found.section("throughput")
    assert "All 7 as a table" in section and section.count('class="plot"') == 2
    assert "needs 4 cores, there are 2" in section and "out of &lt;memory&gt;" in section
    assert "killed &lt;b&gt;by&lt;/b&gt; SIGKILL" in section
    # its link stands where it stands on the page
    assert found.html.index('"#throughput">Throughput</a>') < found.html.index('"#costs">Size')
    assert "No point has a number." in section and "1 row of throughput" in found.html
