"""The table of what bounds the calls of a model's variants."""

import json
from pathlib import Path
from typing import Any

from page_parts import PARTS
from tightrope.report.page import render_page
from tightrope.report.sections.profile import profile_section

EXAMPLE = Path(__file__).parents[3] / "data/summary.json"
MODEL, HOST = "minilm-docstrings", "5c1f0a77d2e9"
NAME = "<encoder.layer.0>"


def call(sequence: int, call_s: float, **changes: Any) -> dict[str, Any]:
    return {
        **{"batch": 1, "sequence": sequence, "height": None, "width": None, "call_s": call_s},
        "bound": "memory",
        "shares": {"compute": 0.3, "memory": 0.55, "overhead": 0.15},
        "outside": 0.05,
        **{"prepare_s": 0.0008, "finish_s": 0.0002, "ceiling": (call_s + 0.001) / 0.001},
        "roofline": {"operations_per_s": 3e9, "peak_per_s": 1e10, "roof_per_s": 8e9},
        "groups": [
            {"group": name, "share": share}
            for name, share in (("products", 0.5), ("conversions", 0.3), ("moves", 0.15))
        ],
        "operators": [
            {**{"name": NAME, "kind": "MatMul", "type": "int8"}, "seconds": 0.001, "share": 0.25}
        ],
        **changes,
    }


def entry(variant: str, *calls: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        **{"model": MODEL, "variant": variant, "host": HOST, "status": "ok", "reason": None},
        **{"unprofiled": None, "measured": "2026-01-01T00:00:00+00:00", "shapes": list(calls)},
        **changes,
    }


UNKNOWN = {"bound": None, "shares": None, "outside": None, "groups": [], "operators": []}
NO_PROFILER = "operators are not timed on a GPU yet"
ENTRIES = [
    entry("cpu-onnxruntime-fp32", call(64, 0.004), call(128, 0.008)),
    entry("cpu-openvino-fp32", call(64, 0.003, bound="compute")),
    entry("cuda-pytorch-fp32", call(64, 0.005, **UNKNOWN), unprofiled=NO_PROFILER),
    entry("cpu-compile-fp32", status="failed", reason="no room"),
]


def section_of(
    folder: Path, entries: list[dict[str, Any]], explanations: list[dict[str, Any]] | None = None
) -> str:
    """The section in the page of the example summary with these profiles."""
    document = {**json.loads(EXAMPLE.read_text()), "explanations": explanations or []}
    (folder / "summary.json").write_text(json.dumps({**document, "profiles": entries}))
    render_page(folder / "summary.json", folder / "summary.html", **PARTS)
    page = (folder / "summary.html").read_text()
    begin = page.find('<section id="profile">')
    return page[begin : page.index("</section>", begin)] if begin >= 0 else ""


def test_rows_are_in_the_order_of_the_shapes_and_the_fastest_is_first() -> None:
    found = [
        (one["variant"], dict(one["shape"])["sequence"]) for one in profile_section(ENTRIES, {})
    ]
    assert found == [
        ("cpu-openvino-fp32", 64),
        ("cpu-onnxruntime-fp32", 64),
        ("cuda-pytorch-fp32", 64),
        ("cpu-onnxruntime-fp32", 128),
    ]


def test_a_row_has_the_shares_and_the_groups_that_take_most() -> None:
    row = profile_section(ENTRIES[:1], {HOST: "AMD"})[0]
    assert (row["bound"], row["shares"]) == ("memory", ["30 %", "55 %", "15 %"])
    assert row["groups"] == "products 50 %, conversions 30 %, moves 15 %"
    assert (row["host"], row["operators"][0]["share"]) == ("AMD", "25 %")


def test_a_row_has_what_goes_around_the_call_and_the_share_of_the_peak() -> None:
    row = profile_section(ENTRIES[:1], {})[0]
    assert (row["around_ms"], row["ceiling"]) == ("1.00", "5.0\N{MULTIPLICATION SIGN}")
    assert row["of_peak"] == "30 %, memory allows 80 %"
    whole = {"operations_per_s": 3e9, "peak_per_s": 1e10, "roof_per_s": 1e10}
    assert profile_section([entry("v", call(64, 0.004, roofline=whole))], {})[0]["of_peak"] == (
        "30 %"
    )


def test_what_is_not_known_around_a_call_stays_open(tmp_path: Path) -> None:
    unknown = {**{"prepare_s": None, "ceiling": None}, "roofline": None}
    entries = [entry("cpu-onnxruntime-fp32", call(64, 0.004, **unknown))]
    row = profile_section(entries, {})[0]
    assert row["around_ms"] is row["ceiling"] is row["of_peak"] is None
    section = section_of(tmp_path, entries)
    assert section.count("no raw examples to prepare") == 4
    assert "no ONNX file in this run" in section


def test_what_is_in_no_operator_is_named_where_it_is_large() -> None:
    row = profile_section([entry("v", call(64, 0.004, outside=0.4))], {})[0]
    assert row["groups"] == "products 50 %, outside of operators 40 %, conversions 30 %"


def test_without_a_profiler_the_reason_stands_in_the_row() -> None:
    row = profile_section(ENTRIES[2:3], {})[0]
    assert row["bound"] is row["groups"] is None
    assert row["unprofiled"] == NO_PROFILER


def test_the_page_has_the_table_and_escapes_what_runtimes_name(tmp_path: Path) -> None:
    section = section_of(tmp_path, ENTRIES)
    assert section.count("<tr>") == 5
    assert "&lt;encoder.layer.0&gt;" in section
    assert NAME not in section
    assert "no room" in section


def test_why_two_variants_differ_has_a_table_of_its_own(tmp_path: Path) -> None:
    part = {"group": "<products>", "seconds": 0.001, "against_s": 0.003, "saved_s": 0.002}
    sizes = {"batch": 1, "sequence": 64, "height": None, "width": None}
    explanation = {
        **{"model": MODEL, "host": HOST, "variant": "cpu-openvino-fp32", **sizes},
        **{"against": "cpu-onnxruntime-fp32", "relation": "best", "saved_s": 0.002},
        **{"parts": [part], "sentences": ["2 ms faster: products \N{MINUS SIGN}2 ms.", "Padding."]},
    }
    section = section_of(tmp_path, ENTRIES, [explanation])
    assert "2 ms faster: products \N{MINUS SIGN}2 ms. Padding." in section
    assert "&lt;products&gt;: 1.00 ms, against 3.00 ms" in section


def test_without_profiles_the_page_has_no_section(tmp_path: Path) -> None:
    assert section_of(tmp_path, []) == ""
