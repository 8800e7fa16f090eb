"""The table of builds, and the remark in the table of all results."""

import json
from pathlib import Path
from typing import Any

from page_parts import PARTS
from tightrope.report.page import render_page
from tightrope.report.sections.builds import builds_section, builds_words
from tightrope.report.style.numbers import TIMES

EXAMPLE = Path(__file__).parents[3] / "data/summary.json"
MODEL, HOST, VARIANT = "minilm-docstrings", "5c1f0a77d2e9", "cpu-onnxruntime-fp32"


def slowdown(ratio: float) -> dict[str, Any]:
    return {
        **{"ratio": ratio, "low": ratio - 0.05, "high": ratio + 0.05},
        "matters": ratio > 1.15,
    }


def build(call_s: float | None, over: float | None = None) -> dict[str, Any]:
    return {
        **{"build_s": 3.14, "size_bytes": 90_900_000, "call_s": call_s},
        **{"low": call_s and call_s - 0.0001, "high": call_s and call_s + 0.0001},
        "over_median": over and slowdown(over),
    }


def entry(*builds: dict[str, Any], spread: float | None, **changes: Any) -> dict[str, Any]:
    return {
        **{"model": MODEL, "variant": VARIANT, "host": HOST, "status": "ok", "reason": None},
        **{"measured": "2026-01-01T00:00:00+00:00", "shape": {"batch": 1, "sequence": 64}},
        **{"builds": list(builds), "spread": spread and slowdown(spread)},
        **{"sizes_differ": False, "identical": False, "rounds": 24, "disturbed_rounds": 0},
        **{"disturbed": None, "provisional": False},
        **changes,
    }


UNLIKE = entry(build(0.004), build(0.003, 0.75), build(0.006, 1.5), spread=2.0)


def page_of(folder: Path, *entries: dict[str, Any]) -> str:
    """The page of the example summary with these entries."""
    document = {**json.loads(EXAMPLE.read_text()), "builds": list(entries)}
    (folder / "summary.json").write_text(json.dumps(document))
    render_page(folder / "summary.json", folder / "summary.html", **PARTS)
    return (folder / "summary.html").read_text()


def part_of(page: str, section: str) -> str:
    begin = page.find(f'<section id="{section}">')
    return page[begin : page.index("</section>", begin)] if begin >= 0 else ""


def test_a_row_has_the_spread_and_every_build() -> None:
    (row,) = builds_section([UNLIKE], {HOST: "AMD"})
    assert (row["fastest_ms"], row["slowest_ms"]) == ("3.00", "6.00")
    assert (row["spread"], row["interval"]) == (f"2.00{TIMES}", "1.95 to 2.05")
    assert (row["matters"], row["files"], row["host"]) == (
        True,
        "different, of the same size",
        "AMD",
    )
    assert row["list"] == [
        "4.00 ms (3.90 to 4.10), the median; 90.9 MB, built in 3.1 s",
        f"3.00 ms (2.90 to 3.10), 0.75{TIMES} of the median; 90.9 MB, built in 3.1 s",
        f"6.00 ms (5.90 to 6.10), 1.50{TIMES} of the median; 90.9 MB, built in 3.1 s",
    ]


def test_files_are_identical_or_differ_in_size() -> None:
    files = [entry(spread=1.0, **one) for one in ({"identical": True}, {"sizes_differ": True})]
    assert [row["files"] for row in builds_section(files, {})] == [
        "identical",
        "of different sizes",
    ]


def test_a_spread_is_told_only_where_it_matters() -> None:
    assert builds_words(UNLIKE) == [
        f"the slowest of 3 builds from the same files takes 2.00{TIMES} (1.95 to 2.05) of the "
        "fastest"
    ]
    assert builds_words(entry(spread=1.05)) == builds_words(entry(spread=None)) == []
    assert builds_words(entry(spread=1.5, disturbed="a compiler", provisional=True)) == []


def test_the_page_has_the_table_and_a_remark_where_it_matters(tmp_path: Path) -> None:
    page = page_of(tmp_path, UNLIKE, entry(spread=None, status="failed", reason="no room"))
    section = part_of(page, "builds")
    assert section.count("<li>") == 3
    assert "no room" in section
    assert '<span class="status">builds</span>' in part_of(page, "results")
    assert 'Builds of the same engine</a>: <span class="bad">1' in part_of(page, "not-run")


def test_disturbed_builds_have_no_number_and_are_counted(tmp_path: Path) -> None:
    words = "other programs used up to 0.5 cores of its processors in a round of builds"
    page = page_of(tmp_path, entry(build(None), build(None), spread=None, disturbed=words))
    assert words in part_of(page, "builds")
    assert "1 comparison of builds" in page


def test_provisional_builds_are_marked(tmp_path: Path) -> None:
    made = entry(build(0.004), build(0.006, 1.5), spread=1.5, provisional=True, disturbed="cc1")
    assert '<span class="verdict provisional">' in part_of(page_of(tmp_path, made), "builds")


def test_without_builds_the_page_has_no_section(tmp_path: Path) -> None:
    assert part_of(page_of(tmp_path), "builds") == ""
