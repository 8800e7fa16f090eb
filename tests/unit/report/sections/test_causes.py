"""The table of what settings would save."""

import json
from pathlib import Path
from typing import Any

import pytest
from page_parts import PARTS
from tightrope.report.page import render_page
from tightrope.report.sections.profile import causes_section

EXAMPLE = Path(__file__).parents[3] / "data/summary.json"
MODEL, HOST, VARIANT = "minilm-docstrings", "5c1f0a77d2e9", "cpu-openvino-fp32"


def cause(**changes: Any) -> dict[str, Any]:
    return {
        **{"batch": 1, "sequence": 96, "height": None, "width": None},
        **{"cause": "25 % of the request is padding", "setting": "buckets: {sequence: [96]}"},
        **{"predicted_low": 0.0015, "predicted_high": 0.0025, "call_s": 0.010},
        **{"saved": {"value": 0.002, "low": 0.0019, "high": 0.0021}, "within": True},
        **{"rounds": 24, "disturbed_rounds": 0, "disturbed": None, "provisional": False},
        **{"reason": None, **changes},
    }


def entry(*causes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        **{"model": MODEL, "variant": VARIANT, "host": HOST, "status": "ok", "reason": None},
        **{"measured": "2026-01-01T00:00:00+00:00", "causes": list(causes), **changes},
    }


UNBUILT = cause(saved=None, within=None, call_s=None, reason="not built: no kernel", sequence=32)
LOST = cause(saved={"value": -0.001, "low": -0.0011, "high": -0.0009}, within=False, sequence=64)


def section(folder: Path, *entries: dict[str, Any]) -> str:
    """The section of the page of the example summary with these entries."""
    document = {**json.loads(EXAMPLE.read_text()), "causes": list(entries)}
    (folder / "summary.json").write_text(json.dumps(document))
    render_page(folder / "summary.json", folder / "summary.html", **PARTS)
    page = (folder / "summary.html").read_text()
    begin = page.find('<section id="causes">')
    return page[begin : page.index("</section>", begin)] if begin >= 0 else ""


def test_rows_are_in_the_order_of_the_shapes_with_both_intervals() -> None:
    unbuilt, lost, saved = causes_section([entry(cause(), LOST, UNBUILT)], {HOST: "AMD"})
    assert (saved["call_ms"], saved["predicted"]) == ("10.0", "1.50 to 2.50")
    assert (saved["saved"], saved["interval"], saved["met"]) == ("2.00", "1.90 to 2.10", "met")
    assert (lost["saved"], lost["met"]) == ("\N{MINUS SIGN}1.00", "missed")
    assert (unbuilt["saved"], unbuilt["met"]) == (None, None)
    assert unbuilt["note"] == "not built: no kernel"


def test_the_page_names_cause_setting_and_reason(tmp_path: Path) -> None:
    found = section(tmp_path, entry(cause(), UNBUILT))
    for words in ("25 % of the request is padding", "buckets: {sequence: [96]}", "1.50 to 2.50"):
        assert words in found
    assert "not built: no kernel" in found


def test_the_page_says_where_no_setting_removes_anything(tmp_path: Path) -> None:
    assert "No setting removes a cause" in section(tmp_path, entry())


@pytest.mark.parametrize("entries", [[], [entry(model="another")]])
def test_a_model_without_entries_is_not_named(tmp_path: Path, entries: list[Any]) -> None:
    assert MODEL not in section(tmp_path, *entries)
