"""Which ONNX files are drawn, and from what."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from tightrope.plan.job_inputs import GRAPH, graph_columns, graph_inputs, graph_records
from tightrope.variants import parse

SEARCHES = {"model": ["a"], "scheme": ["u8s8"], "calibration": ["minmax-8"]}
ALL = ["exported", "simplified", "quantized"]


def drawn(*names: str, graphs: list[str] | None = None, **more: Any) -> list[str]:
    """The graphs of one model with these variants."""
    calibration = {"reduce_range": False}
    config = {"graphs": ALL if graphs is None else graphs, "calibration": calibration, **more}
    found = graph_columns(config | {"host": "h"}, [("a", parse(name)) for name in names])
    assert set(found["model"]) <= {"a"}
    return found["graph"]


def inputs(model: str, graph: str) -> dict[str, str]:
    return graph_inputs(SEARCHES, SimpleNamespace(model=model, graph=graph))


def test_of_a_model_that_needs_no_onnx_file_none_is_made_for_a_picture() -> None:
    assert drawn("cpu-pytorch-fp32", "cpu-compile-bf16") == []


def test_calibrations_that_differ_in_numbers_only_are_drawn_once() -> None:
    names = [f"cpu-onnxruntime-int8-{one}-{n}" for one in ("minmax", "entropy") for n in (8, 16)]
    assert drawn("cpu-pytorch-fp32", *names) == ["exported", "simplified", "u8s8-minmax-8"]


def test_a_repair_another_scheme_and_each_search_have_pictures_of_their_own() -> None:
    names = (
        "cpu-onnxruntime-int8-minmax-8",
        "cpu-onnxruntime-int8-minmax-8-smooth",
        "cpu-onnxruntime-int8-auto-minmax-8",
        "cpu-onnxruntime-int8-auto-entropy-8",
        "cuda-tensorrt-int8-fp16-minmax-8",
        "cuda-tensorrt-fp8-minmax-8",
    )
    assert drawn(*names, graphs=["quantized"]) == [
        "u8s8-minmax-8",
        "u8s8-minmax-8-smooth",
        "u8s8-minmax-8-auto",
        "u8s8-entropy-8-auto",
        "s8s8-minmax-8",
        "e4m3-minmax-8",
    ]


def test_of_a_file_that_is_quantized_already_the_file_is_the_quantized_one() -> None:
    names = ("cpu-onnxruntime-fp32", "cpu-onnxruntime-given")
    assert drawn(*names, graphs=["quantized"]) == ["exported"]
    assert drawn(*names, graphs=["simplified", "quantized"]) == ["exported", "simplified"]
    assert drawn(*names, graphs=["simplified"]) == ["simplified"]


def test_without_graphs_there_is_no_job() -> None:
    assert drawn("cpu-onnxruntime-fp32", graphs=[]) == []
    assert graph_records({"model": [], "graph": []}) == []


def test_a_picture_has_bars_where_operators_of_those_names_are_timed_for_int8_auto() -> None:
    costs = "artifacts/a/costs/u8s8-minmax-8.json"
    assert inputs("a", "exported") == {"onnx": "artifacts/a/model.onnx"}
    assert inputs("a", "simplified") == {
        "onnx": "artifacts/a/model.simplified.onnx",
        "costs": costs,
    }
    for graph in ("u8s8-minmax-8", "u8s8-minmax-8-auto", "u8s8-entropy-16-smooth"):
        assert inputs("a", graph) == {
            "onnx": f"artifacts/a/quantized/{graph}.onnx",
            "costs": costs,
        }
    assert inputs("a", "s8s8-minmax-8") == {"onnx": "artifacts/a/quantized/s8s8-minmax-8.onnx"}
    assert inputs("b", "simplified") == {"onnx": "artifacts/b/model.simplified.onnx"}


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("simplified", True),
        ("u8s8-minmax-8", True),
        ("e4m3-entropy-512-smooth", True),
        ("u8s8-minmax-8-auto", True),
        ("optimized", False),
        ("u8s8", False),
        ("cpu-onnxruntime-fp32", False),
    ],
)
def test_graphs_are_known_by_name(name: str, known: bool) -> None:
    assert bool(re.fullmatch(GRAPH, name)) == known
