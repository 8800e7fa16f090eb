"""The table of first calls after a pause, and the remark in the table of all results."""

import json
from pathlib import Path
from typing import Any

from page_parts import PARTS
from tightrope.report.page import render_page
from tightrope.report.sections.requested import idleness_section, idleness_words
from tightrope.report.style.numbers import TIMES

EXAMPLE = Path(__file__).parents[3] / "data/summary.json"
MODEL, HOST, VARIANT = "minilm-docstrings", "5c1f0a77d2e9", "cpu-onnxruntime-fp32"
SHAPE = {"batch": 1, "sequence": 64}


def pause(pause_s: float, ratio: float | None, **changes: Any) -> dict[str, Any]:
    slowdown = ratio and {
        **{"ratio": ratio, "low": ratio - 0.05, "high": ratio + 0.05},
        "matters": ratio > 1.15,
    }
    return {
        **{"pause_s": pause_s, "calls": 15, "disturbed_calls": 0, "slowdown": slowdown},
        "first_call_s": ratio and 0.004 * ratio,
        **{"reason": None, "disturbed": None, "provisional": False},
        **changes,
    }


def entry(*pauses: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        **{"model": MODEL, "variant": VARIANT, "host": HOST, "status": "ok", "reason": None},
        **{"measured": "2026-01-01T00:00:00+00:00", "shape": SHAPE, "back_to_back_s": 0.004},
        **{"spent_s": 60.0, "pauses": list(pauses)},
        **changes,
    }


def page_of(folder: Path, *entries: dict[str, Any]) -> str:
    """The page of the example summary with these entries."""
    document = {**json.loads(EXAMPLE.read_text()), "idleness": list(entries)}
    (folder / "summary.json").write_text(json.dumps(document))
    render_page(folder / "summary.json", folder / "summary.html", **PARTS)
    return (folder / "summary.html").read_text()


def part_of(page: str, section: str) -> str:
    begin = page.find(f'<section id="{section}">')
    return page[begin : page.index("</section>", begin)] if begin >= 0 else ""


SLOW = entry(pause(0.1, 1.02), pause(1, 1.5), pause(10, 2.25))


def test_a_row_has_the_ratio_with_its_interval() -> None:
    rows = idleness_section([SLOW], {HOST: "AMD"})
    assert [row["pause"] for row in rows] == ["0.1 s", "1 s", "10 s"]
    row = rows[1]
    assert (row["back_to_back_ms"], row["first_call_ms"]) == ("4.00", "6.00")
    assert (row["ratio"], row["interval"], row["matters"]) == (f"1.50{TIMES}", "1.45 to 1.55", True)
    assert (row["host"], row["note"], rows[0]["matters"]) == ("AMD", None, False)


def test_only_pauses_that_matter_are_told() -> None:
    first, second = idleness_words(SLOW)
    assert first == (
        f"after 1 s without a call the next one takes 1.50{TIMES} (1.45 to 1.55) of one back to "
        "back: 6.00 ms"
    )
    assert second.startswith("after 10 s")
    assert idleness_words(entry(pause(1, 1.1), pause(10, None, reason="only 2 calls"))) == []
    assert idleness_words(entry(pause(1, 1.5, disturbed="a compiler", provisional=True))) == []


def test_the_page_has_the_table_and_a_remark_where_it_matters(tmp_path: Path) -> None:
    page = page_of(tmp_path, SLOW, entry(status="failed", reason="no room"))
    section = part_of(page, "idleness")
    assert section.count("<tr>") == 4
    assert section.count('<span class="verdict slower">') == 2
    assert "no room" in section
    results = part_of(page, "results")
    assert results.count("after 10 s without a call") == 1
    assert '<span class="status">pauses</span>' in results
    assert 'First calls after a pause</a>: <span class="bad">1' in part_of(page, "not-run")


def test_what_does_not_matter_is_no_remark(tmp_path: Path) -> None:
    page = page_of(tmp_path, entry(pause(1, 1.02)))
    assert part_of(page, "idleness")
    assert "without a call" not in part_of(page, "results")


def test_a_disturbed_pause_has_no_number_and_is_counted(tmp_path: Path) -> None:
    words = "other programs used up to 0.5 cores of its processors in pauses of 10 s"
    page = page_of(tmp_path, entry(pause(1, 1.02), pause(10, None, disturbed=words)))
    assert words in part_of(page, "idleness")
    assert "1 length of pauses" in page


def test_without_idleness_the_page_has_no_section(tmp_path: Path) -> None:
    assert part_of(page_of(tmp_path), "idleness") == ""
