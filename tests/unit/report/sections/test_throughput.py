"""The heat map of throughput, its words and its table."""

import json
import re
from typing import Any

import pytest
from colour_vision import contrast
from drawn_charts import drawn
from report_pages import MODEL, page
from tightrope.report.sections.throughput import division, throughput_section
from tightrope.report.style.palette import HEAT, INKS

VARIANT = "cpu-openvino-int8-bf16-nncf-512"
TIMES = "\N{MULTIPLICATION SIGN}"


MEASURED = {"calls": 700, "p50_s": 0.01, "p99_s": 0.02, "foreign_cores": 0.0, "peak_rss_bytes": 1}


def point(instances: int, threads: int, batch: int, rate: float | None, **more: Any) -> Any:
    return {
        **{"instances": instances, "threads": threads, "batch": batch},
        **{"skipped": False, "reason": None, "disturbed": None, "provisional": False},
        **{"samples_per_s": rate, "low": rate and 0.98 * rate, "high": rate and 1.02 * rate},
        **(MEASURED if rate else dict.fromkeys(MEASURED)),
        **more,
    }


SINGLE = point(1, 8, 4, 800.0)
BEST = point(2, 4, 16, 1240.0, p99_s=0.08)
WITHIN = point(2, 4, 1, 500.0)
SKIPPED = point(4, 2, 1, None, skipped=True, reason="slower already: 2 instances 500 samples/s")
FAILED = point(8, 1, 1, None, reason="killed above 2.0 GB of memory")
GAIN = {"ratio": 1.55, "low": 1.5, "high": 1.6, "verdict": "faster"}
POINTS = [SINGLE, WITHIN, BEST, SKIPPED, FAILED]


def entry(**changes: Any) -> dict[str, Any]:
    return {
        **{"model": "m", "variant": VARIANT, "host": "h", "status": "ok", "cores": 8},
        **{"sequence": 128, "height": None, "width": None, "p99_bound_s": 0.05},
        **{"points": POINTS, "best": BEST, "best_within_bound": WITHIN, "single": SINGLE},
        **{"gain": GAIN, **changes},
    }


def words(**changes: Any) -> str:
    (figure,) = throughput_section([entry(**changes)], {})
    return " ".join(figure["sentences"])


DISTURBED = point(2, 4, 16, 1240.0, provisional=True, disturbed="other programs used 2.0 cores")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"p99_bound_s": None},
            "Best: 2 instances, 4 threads each, at batch 16: 1,240 samples/s (95 % interval 1,220 "
            f"to 1,260), 1.55{TIMES} (1.50 to 1.60) of one instance with all 8 threads at its best "
            "batch, 4.",
        ),
        (
            {"p99_bound_s": None, "best": DISTURBED, "points": [SINGLE, DISTURBED]},
            "4. It is provisional: other programs used 2.0 cores.",
        ),
        ({}, "With p99 within 50.0 ms: 2 instances, 4 threads each, at batch 1: 500"),
        ({"best_within_bound": BEST}, "Its p99 is within 50.0 ms."),
        ({"best_within_bound": None}, "No point is known to have p99 within 50.0 ms."),
        ({"best": SINGLE, "gain": None}, "no other division of the cores gave more"),
        ({"best": None, "single": None, "gain": None}, "No point has a number."),
    ],
)
def test_sentences_say_what_is_best_and_by_what_factor(changes: Any, told: str) -> None:
    assert told in words(**changes)
    assert division(point(1, 1, 1, 1.0)) == "1 instance, 1 thread"
    assert division(point(2, 1, 1, 1.0)) == "2 instances, 1 thread each"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_cell_has_its_number_or_a_word(scheme: str) -> None:
    (figure,) = throughput_section([entry()], {})
    assert not re.search(r"#[0-9a-f]{6}", json.dumps(figure["chart"]))
    svg = drawn(figure["chart"], scheme)
    for text in ("800/s", "1,240/s", "500/s", "skipped", "failed", "2 instances, 4 threads each"):
        assert text in svg
    notes = {cell["rate"]: cell["note"] for cell in figure["cells"]}
    assert notes["skipped"].startswith("slower already") and notes["failed"].startswith("killed")
    assert [cell["best"] for cell in figure["cells"]] == [False, False, True, False, False]
    # each cell is wide enough for its text, and the chart then scrolls
    wide = [point(1, 8, batch, 800.0) for batch in (1, 2, 4, 8, 16, 32)]
    (many,) = throughput_section([entry(points=wide)], {})
    assert (figure["least_width"], many["least_width"]) == (453, 741)
    for colour in HEAT[scheme == "dark"]:
        assert contrast(INKS[scheme]["text"], colour) >= 4.5


def test_the_page_has_the_chart_its_table_and_what_failed() -> None:
    failed = entry(model=MODEL, variant="cpu-tvm-fp32", status="failed", points=[], best=None)
    failed["reason"] = "killed <b>by</b> SIGKILL"
    # images, and disturbed points
    disturbed = point(1, 8, 1, None, disturbed="other programs used up to 2.0 cores")
    own = {"sequence": None, "height": 32, "width": 32, "points": [disturbed]}
    own |= dict.fromkeys(("best", "best_within_bound", "single", "gain"))
    lost = entry(model=MODEL, variant="cpu-openvino-bf16", **own)
    slower = entry(model=MODEL, variant="cpu-pytorch-fp32", best=SINGLE)
    found = page(throughput=[slower, entry(model=MODEL), failed, lost])
    section = found.section("throughput")
    assert "All 5 as a table" in section and section.count('class="plot"') == 3
    # the highest throughput comes first
    assert section.index(f">{VARIANT}<") < section.index(">cpu-pytorch-fp32<")
    assert "slower already: 2 instances 500 samples/s" in section
    assert "killed &lt;b&gt;by&lt;/b&gt; SIGKILL" in section
    assert '<a href="#throughput">Throughput</a>' in found.html
    assert "No point has a number." in section and "1 point of throughput" in found.html
