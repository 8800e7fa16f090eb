"""The section on two models that are served as one."""

import json
from pathlib import Path
from typing import Any

from page_parts import PARTS
from tightrope.report.page import render_page
from tightrope.report.sections.cascades import probability

EXAMPLE = Path(__file__).parents[3] / "data/summary.json"
RATIO = {"ratio": 1.8, "low": 1.7, "high": 1.9, "verdict": "faster"}
TOP = {"top1": 0.9, "low": 0.88, "high": 0.92, "samples": 1500}
CHANGE = {
    **{"delta": -0.002, "delta_low": -0.006, "delta_high": 0.002, "gained": 2, "lost": 5},
    **{"p_value": 0.45, "verdict": "kept"},
}
SERVED = {"accuracy": TOP, "samples_per_s": 123.4, "low": 120.0, "high": 127.0}
ENTRY: dict[str, Any] = {
    **{"cascade": "fast", "model": "large", "variant": "cpu-openvino-bf16", "host": "h"},
    **{"small_model": "small", "small_variant": "cpu-openvino-fp32", "status": "ok"},
    **{"agreement": None, "budget_points": 1.0, "threshold": 0.9987, "share": 0.71},
    "chosen": {"samples": 1024, "share": 0.7, "lost": 3, "gained": 1, "p_value": 0.02},
    **{name: {**SERVED, "peak_rss_bytes": 250_000_000} for name in ("small", "large", "both")},
    "agreed": {"share": 0.98, "low": 0.97, "high": 0.99, "samples": 1500},
    **{"against_large": CHANGE, "against_small": CHANGE, "over_large": RATIO, "over_small": RATIO},
    **{"disturbed": None, "provisional": False, "verdict": "use it", "sentence": "Use it: <so>."},
}


def section(folder: Path, *entries: dict[str, Any]) -> str:
    """The section of the page of the example summary with these entries, empty without it."""
    document = {**json.loads(EXAMPLE.read_text()), "cascades": list(entries)}
    (folder / "summary.json").write_text(json.dumps(document))
    render_page(folder / "summary.json", folder / "summary.html", **PARTS)
    page = (folder / "summary.html").read_text()
    begin = page.find('<section id="cascades">')
    assert (begin >= 0) == ('href="#cascades"' in page)
    return page[begin : page.index("</section>", begin)] if begin >= 0 else ""


def test_it_says_what_to_do_who_answers_and_how_much_faster_it_is(tmp_path: Path) -> None:
    text = section(tmp_path, ENTRY)
    for words in ("Use it: &lt;so&gt;.", "at least 0.9987", "71.0 % by the small model"):
        assert words in text
    assert text.count("1.70 to 1.90") == 2
    assert "5 lost, 2 gained" in text
    assert text.count('<tr><th scope="row">') == 3


def test_under_traffic_there_is_a_row_for_each_of_the_three(tmp_path: Path) -> None:
    none = dict.fromkeys(("single_stream_p90_s", "single_stream_p99_s", "server_p99_s"))
    rates = {**none, "disturbed": None, "provisional": False, "server_per_s": None}
    gain = {"gain": 2.1, "gain_low": 2.05, "gain_high": 2.16, "gain_verdict": "faster"}
    row = {**rates, **gain, "samples_per_s": 204.0, "server_reason": "p99 is <too> long"}
    rows = [{"served": name, **row} for name in ("small", "large", "cascade")]
    traffic = {"batch": 8, "p99_bound_s": 0.1, "samples": 1500, "rows": rows}
    traffic["reason"] = None
    text = section(tmp_path, {**ENTRY, "traffic": traffic})
    assert "1,500 evaluation samples" in text
    assert text.count('<tr><th scope="row">') == 6
    assert text.count("2.05 to 2.16") == 2
    assert "&lt;too&gt;" in text
    failed = section(
        tmp_path, {**ENTRY, "traffic": {**traffic, "rows": [], "reason": "no <memory>"}}
    )
    assert "Under real traffic it was not measured: no &lt;memory&gt;." in failed


def test_without_cascades_there_is_no_section(tmp_path: Path) -> None:
    assert section(tmp_path) == ""


def test_without_a_threshold_there_is_the_reason_and_no_table(tmp_path: Path) -> None:
    nothing = {"threshold": None, "chosen": None, "share": None, "agreed": None}
    text = section(tmp_path, {**ENTRY, **nothing, "verdict": "large alone"})
    assert "large alone" in text
    assert "<table>" not in text


def test_a_threshold_has_two_digits_of_what_it_lacks_to_one() -> None:
    assert [probability(one) for one in (0.29, 0.944, 0.9987, 0.0)] == [
        *("0.29", "0.944", "0.9987", "0.00")
    ]
