"""The tables of what bounds the calls of a model's variants, and of what settings would save."""

import re
from typing import Any

from report_pages import HOST, MEASURED, MODEL, example, page, summary_of
from tightrope.report.style.numbers import largest_groups, of_peak
from tightrope.summary.profile import ProfiledCall

NAME = "<encoder.layer.0>"
OPERATOR = {"name": NAME, "kind": "MatMul", "type": "int8", "seconds": 0.001, "share": 0.25}
GROUPS = {"products": 0.5, "conversions": 0.3, "moves": 0.15}


def call(sequence: int, call_s: float, **changes: Any) -> dict[str, Any]:
    return {
        **{"shape": {"batch": 1, "sequence": sequence}, "call_s": call_s},
        "bound": "memory",
        "shares": {"compute": 0.3, "memory": 0.55, "overhead": 0.15},
        "outside": 0.05,
        **{"prepare_s": 0.0008, "finish_s": 0.0002, "ceiling": (call_s + 0.001) / 0.001},
        "roofline": {"operations_per_s": 3e9, "peak_per_s": 1e10, "roof_per_s": 8e9},
        "groups": [{"group": name, "share": share} for name, share in GROUPS.items()],
        "operators": [OPERATOR],
        **changes,
    }


def entry(variant: str, *calls: dict[str, Any], **changes: Any) -> dict[str, Any]:
    own = {"variant": variant, "unprofiled": None, "shapes": list(calls)}
    return {**MEASURED, **own, **changes}


UNKNOWN = {"bound": None, "shares": None, "outside": None, "groups": [], "operators": []}
NO_PROFILER = "PyTorch's profiler recorded no kernels"
ENTRIES = [
    entry("cpu-onnxruntime-fp32", call(64, 0.004), call(128, 0.008)),
    entry("cpu-openvino-fp32", call(64, 0.003, bound="compute")),
    entry("cuda-pytorch-fp32", call(64, 0.005, **UNKNOWN), unprofiled=NO_PROFILER),
    entry("cpu-compile-fp32", status="failed", reason="no room"),
]


def profiled(**changes: Any) -> ProfiledCall:
    given = example(profiles=[entry("v", call(64, 0.004, **changes))])
    return summary_of(given).profiles[0].shapes[0]


def test_a_row_has_the_largest_groups_and_what_is_not_known_around_a_call_stays_open() -> None:
    whole = {"operations_per_s": 3e9, "peak_per_s": 1e10, "roof_per_s": 1e10}
    assert of_peak(profiled(roofline=whole).roofline) == "30 %"
    largest = "products 50 %, outside of operators 40 %, conversions 30 %"
    assert largest_groups(profiled(outside=0.4)) == largest
    assert of_peak(None) is None
    unknown = {**{"prepare_s": None, "ceiling": None}, "roofline": None}
    section = page(profiles=[entry("v", call(64, 0.004, **unknown))]).section("profile")
    assert section.count("no raw examples to prepare") == 4
    assert "no ONNX file in this run" in section


def test_the_page_has_both_tables_and_escapes_what_runtimes_name() -> None:
    part = {"group": "<products>", "seconds": 0.001, "against_s": 0.003, "saved_s": 0.002}
    sizes = {"shape": {"batch": 1, "sequence": 64}}
    explanation = {
        **{"model": MODEL, "host": HOST, "variant": "cpu-openvino-fp32", **sizes},
        **{"against": "cpu-onnxruntime-fp32", "relation": "best", "saved_s": 0.002},
        **{"parts": [part], "sentences": ["2 ms faster: products \N{MINUS SIGN}2 ms.", "Padding."]},
    }
    found = page(profiles=ENTRIES, explanations=[explanation])
    section, text = found.section("profile"), found.text.replace("\xa0", " ")
    # by shape, the fastest first
    shapes = re.findall(r'row"><code class="variant">\w+-(\w+)-fp32<.*?(\d+) tokens', section)
    slower = [("onnxruntime", "64"), ("pytorch", "64"), ("onnxruntime", "128")]
    assert shapes == [("openvino", "64"), *slower]
    numbers = "1.00 5.0\N{MULTIPLICATION SIGN} 30 %, memory allows 80 % memory 30 % 55 % 15 %"
    groups = "products 50 %, conversions 30 %, moves 15 % MatMul, 25 %"
    assert f"64 tokens 4.00 {numbers} {groups}" in text
    assert f"30 %, memory allows 80 % \N{EN DASH} {NO_PROFILER}" in text
    assert "&lt;encoder.layer.0&gt;" in section and NAME not in section
    assert "no room" in section
    assert "2 ms faster: products \N{MINUS SIGN}2 ms. Padding." in section
    assert "&lt;products&gt;: 1.00 ms, against 3.00 ms" in section


def cause(sequence: int = 96, **changes: Any) -> dict[str, Any]:
    return {
        "shape": {"batch": 1, "sequence": sequence},
        **{"cause": "25 % of the request is padding", "setting": "buckets: {sequence: [96]}"},
        **{"predicted_low": 0.0015, "predicted_high": 0.0025, "call_s": 0.010},
        **{"saved": {"value": 0.002, "low": 0.0019, "high": 0.0021}, "within": True},
        **{"rounds": 24, "disturbed_rounds": 0, "disturbed": None, "provisional": False},
        **{"reason": None, **changes},
    }


def caused(*causes: dict[str, Any]) -> dict[str, Any]:
    return {**MEASURED, "variant": "cpu-openvino-fp32", "causes": list(causes)}


UNBUILT = cause(saved=None, within=None, call_s=None, reason="not built: no kernel", sequence=32)
LOST = cause(saved={"value": -0.001, "low": -0.0011, "high": -0.0009}, within=False, sequence=64)


def test_causes_are_in_the_order_of_the_shapes_with_both_intervals() -> None:
    found = page(causes=[caused(cause(), LOST, UNBUILT)])
    part = found.text[found.text.index("Predicted saving, ms") :].replace("\xa0", " ")
    unbuilt, lost, saved, *_ = part.split("cpu-openvino-fp32 ")[1:]
    rest = "25 % of the request is padding buckets: {sequence: [96]}"
    why = "\N{EN DASH} not built: no kernel"
    assert f"32 tokens {why} 1.50 to 2.50 {why} {why} {why} {rest} not built: no kernel" in unbuilt
    assert f"\N{MINUS SIGN}1.00 \N{MINUS SIGN}1.10 to \N{MINUS SIGN}0.900 missed {rest}" in lost
    assert f"96 tokens 10.0 1.50 to 2.50 2.00 1.90 to 2.10 met {rest}" in saved
    assert "No setting removes a cause" in page(causes=[caused()]).section("causes")
    another = page(causes=[{**caused(), "model": "another"}])
    assert MODEL not in another.section("causes")
