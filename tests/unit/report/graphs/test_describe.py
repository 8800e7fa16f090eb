"""What is told of an ONNX graph, its structure for Netron, and what is written of a failure."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from tightrope.artifacts.failures import failure_in, write_failure
from tightrope.errors import ArtifactError
from tightrope.jobs.child import Limits
from tightrope.onnx.file import load_onnx
from tightrope.report.graphs.describe import (
    LEFT_OUT,
    Block,
    describe,
    describe_graph,
    fold_repetitions,
    without_weights,
)
from tiny_convolutions import make_convolutions
from tiny_model import TinyModel


def told(path: Path, costs=None) -> dict:
    return describe(without_weights(load_onnx(path), "").graph, costs)


def layers(document: dict) -> dict[tuple[str, ...], dict]:
    return {tuple(one["names"]): one for block in document["blocks"] for one in block["layers"]}


def formats(document: dict) -> dict[str, set[str]]:
    """Kinds of operators with the formats in which they compute."""
    found: dict[str, set[str]] = {}
    for layer in layers(document).values():
        for run in layer["operators"]:
            found.setdefault(run["type"], set()).add(run["precision"])
    return found


def named_blocks(count: int, *, nodes: int = 2) -> onnx.ModelProto:
    """A chain of equal blocks `net.blocks.N`, a product and some Relu each, named as by torch."""
    made, weights, last = [], [], "x"
    for number in range(count):
        weight = f"classifier.net.blocks.{number}.linear.weight"
        array = np.full((64, 64), number + 1, np.float32)
        weights.append(numpy_helper.from_array(array, weight))
        made.append(helper.make_node("MatMul", [last, weight], [f"p{number}"], name=f"n{number}"))
        last = f"p{number}"
        for step in range(nodes - 1):
            made.append(helper.make_node("Relu", [last], [f"r{number}_{step}"]))
            last = f"r{number}_{step}"
    made.append(helper.make_node("ReduceMean", [last], ["pooled"], keepdims=1))
    head = numpy_helper.from_array(np.ones((64, 3), np.float32), "classifier.head.linear.weight")
    made.append(helper.make_node("MatMul", ["pooled", "classifier.head.linear.weight"], ["y"]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", None]) for name in "xy"]
    graph = helper.make_graph(made, "net", ends[:1], ends[1:], [*weights, head])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("file", ["onnx", "simplified", "u8s8"])
def test_each_operator_of_a_transformer_is_in_one_layer_of_its_checkpoint(tiny, file):
    document, graph = told(getattr(tiny, file)), load_onnx(getattr(tiny, file)).graph
    found = layers(document)
    assert [name for one in found for name in one if name] == [
        *("bert.embeddings", "bert.encoder.layer.0", "bert.encoder.layer.1"),
        *("bert.pooler", "classifier"),
    ]
    blocks = [(one["times"], layer) for one in document["blocks"] for layer in one["layers"]]
    drawn = sum(run["count"] * times for times, layer in blocks for run in layer["operators"])
    stored = ("QuantizeLinear", "DequantizeLinear", "Constant")
    hidden = sum(document["by_type"].get(kind, 0) for kind in stored)
    assert drawn == document["operators"] - hidden == sum(document["by_precision"].values())
    assert document["operators"] == len(graph.node)
    if file == "simplified":
        # the mask that every layer reads is in none of them
        assert {"Sub", "Mul"} <= {run["type"] for run in found[("",)]["operators"]}
        first = {run["type"] for run in found[("bert.encoder.layer.0",)]["operators"]}
        assert "Softmax" in first and not {"Sub", "Mul"} & first


@pytest.mark.parametrize(("scheme", "name"), [("u8s8", "int8"), ("s8s8", "int8"), ("e4m3", "fp8")])
def test_products_between_quantizing_and_dequantizing_are_quantized(tiny, scheme, name) -> None:
    found = formats(told(getattr(tiny, scheme)))
    assert name in found["MatMul"] | found["Gemm"]
    assert found["Softmax"] == found["LayerNormalization"] == {"fp32"}
    plain, quantized = told(tiny.simplified), told(getattr(tiny, scheme))
    assert formats(plain)["MatMul"] == {"fp32"}
    assert plain["parameters"] == quantized["parameters"] == plain["weight_bytes"] / 4
    assert plain["parameters"] < quantized["weight_bytes"] < 3 * plain["parameters"]


QUANTIZED = """(float[1, 4] x) => (float[1, 4] y, float[1, 4] z)
    <float scale = {0.1}, int8 zero = {0}>
    {
        q = QuantizeLinear (x, scale, zero)
        d = DequantizeLinear (q, scale, zero)
        between = Relu (d)
        r = QuantizeLinear (between, scale, zero)
        y = DequantizeLinear (r, scale, zero)
        z = Sigmoid (d)
    }"""
BIASED = """(float[1, 2] x) => (float[1, 2] y)
    <float scale = {0.1}, int8 zero = {0}, int8[2, 2] k = {1, 2, 3, 4}, float[2] bias = {1, 2}>
    {
        q = QuantizeLinear (x, scale, zero)
        d = DequantizeLinear (q, scale, zero)
        w = DequantizeLinear (k, scale, zero)
        y = Gemm (d, w, bias)
    }"""
MIXED = """(float[2, 2] x, uint8[2, 2] i) => (bfloat16[2, 2] b, int32[2, 2] p, int64[2] s)
    {
        h = Cast <to = 10> (x)
        a = Relu (h)
        c = Cast <to = 16> (a)
        b = Neg (c)
        p = MatMulInteger (i, i)
        s = Shape (x)
    }"""
INNER = """(bool c, float[2] x) => (float[2] y)
    {
        y = If (c) <
            then_branch = yes () => (float[2] a) { b = Relu (x) a = Neg (b) },
            else_branch = no () => (float[2] d) { d = Identity (x) }
        >
    }"""


@pytest.mark.parametrize(
    ("text", "expected", "operators"),
    [
        # only what a product gives to a quantizer counts as int8 elsewhere
        (QUANTIZED, {"Relu": {"int8"}, "Sigmoid": {"fp32"}}, 6),
        # int8 keeps a bias in more bits
        (BIASED, {"Gemm": {"int8"}}, 4),
        (MIXED, {"Relu": {"fp16"}, "Neg": {"bf16"}, "MatMulInteger": {"int8"}}, 6),
        # operators of inner graphs are counted
        (INNER, {"If": {"fp32"}}, 4),
    ],
)
def test_an_operator_has_the_format_in_which_it_computes(text, expected, operators):
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\nnet {text}')
    document = describe(without_weights(model, "").graph)
    assert expected.items() <= formats(document).items()
    assert document["operators"] == operators


def test_equal_blocks_are_told_once_and_the_pooling_is_no_part_of_the_last() -> None:
    document = describe(without_weights(named_blocks(9), "").graph)
    assert [block["times"] for block in document["blocks"]] == [9, 1]
    (block,), (head,) = (one["layers"] for one in document["blocks"])
    assert block["names"] == [f"net.blocks.{number}" for number in range(9)]
    assert [run["type"] for run in head["operators"]] == ["ReduceMean", "MatMul"]


def test_without_names_each_product_begins_a_layer_and_periods_fold() -> None:
    model = named_blocks(8)
    names = {tensor.name: f"w{n}" for n, tensor in enumerate(model.graph.initializer)}
    for tensor in model.graph.initializer:
        tensor.name = names[tensor.name]
    for node in model.graph.node:
        node.name, node.input[:] = "", [names.get(one, one) for one in node.input]
    document = describe(without_weights(model, "").graph)
    assert document["blocks"][0]["times"] >= 7
    assert document["blocks"][0]["layers"][0]["names"][0] == "MatMul 1"


def test_names_of_the_older_exporter_are_paths() -> None:
    model = named_blocks(3)
    for node in model.graph.node:
        number = node.output[0][1:].partition("_")[0]
        block = f"/net/blocks.{number}/linear/{node.op_type}"
        node.name = block if number.isdigit() else "/head/Op"
        node.input[:] = [name.replace(".", "_") for name in node.input]
    for tensor in model.graph.initializer:
        tensor.name = tensor.name.replace(".", "_")
    names = [name for one in layers(describe(without_weights(model, "").graph)) for name in one]
    assert names == ["net.blocks.0", "net.blocks.1", "net.blocks.2", "head"]


def test_shares_of_the_time_are_those_of_the_slowest_shape_and_of_the_format() -> None:
    model = named_blocks(2)
    rows = [{"batch": one, "float_s": 4.0 + one, "int8_s": 1.0} for one in (1, 5)]
    document = describe(without_weights(model, "").graph, {"host": "h", "operators": {"n1": rows}})
    assert document["time"] == {"shape": {"batch": 5}, "host": "h"}
    seconds = [layer["seconds"] for block in document["blocks"] for layer in block["layers"]]
    assert seconds == [9.0, None]
    assert describe(model.graph, {"host": "h", "operators": {}})["time"] is None
    # a sequence folds where that spares the most
    assert fold_repetitions("abbbc") == [Block(0, 1, 1), Block(1, 1, 3), Block(4, 1, 1)]
    assert fold_repetitions("aabaabaab") == [Block(0, 3, 3)]
    assert fold_repetitions("") == []


LIMITS = Limits(memory_bytes=4e9, seconds=60)


def described(source: Path, folder: Path, costs: Path | None = None) -> tuple[Path, Path]:
    record, structure = (folder / f"graph.{kind}" for kind in ("json", "onnx"))
    describe_graph(source, costs, record, structure, title="tiny graph", limits=LIMITS)
    return record, structure


def test_the_structure_has_every_operator_and_shape_and_no_weights(tiny, tmp_path):
    record, structure = described(tiny.u8s8, tmp_path)
    assert structure.stat().st_size < tiny.u8s8.stat().st_size / 2
    bare = onnx.load(structure, load_external_data=False)
    model = load_onnx(tiny.u8s8)
    assert [node.name for node in bare.graph.node] == [node.name for node in model.graph.node]
    for ours, theirs in zip(bare.graph.initializer, model.graph.initializer, strict=True):
        assert (ours.name, ours.data_type) == (theirs.name, theirs.data_type)
        assert list(ours.dims) == list(theirs.dims)
    left_out = [one for one in bare.graph.initializer if one.data_location == TensorProto.EXTERNAL]
    assert left_out and all(not one.raw_data for one in left_out)
    assert bare.graph.value_info and "tiny graph" in bare.doc_string
    # who tries to run it reads that weights are left out
    with pytest.raises(Exception, match=LEFT_OUT):
        onnx.load(structure)
    (tmp_path / "again").mkdir()
    pairs = zip((record, structure), described(tiny.u8s8, tmp_path / "again"), strict=True)
    assert all(one.read_bytes() == other.read_bytes() for one, other in pairs)


def test_constants_that_say_what_a_graph_does_stay_and_weights_in_inner_graphs_do_not() -> None:
    model = make_convolutions()
    small = [tensor for tensor in model.graph.initializer if tensor.ByteSize() < 500]
    kept = {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in small}
    found = {tensor.name: tensor for tensor in without_weights(model, "").graph.initializer}
    assert kept
    for name, values in kept.items():
        assert numpy_helper.to_array(found[name]).tolist() == values
    large = helper.make_tensor("w", TensorProto.FLOAT, [64, 64], [0.5] * 4096)
    y, c = (helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in "yc")
    constant = helper.make_node("Constant", [], ["y"], value=large)
    inner = helper.make_graph([constant], "body", [], [y])
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    whole = helper.make_model(helper.make_graph([node], "net", [c], [y]))
    assert without_weights(whole, "").ByteSize() < 1000
    trees = helper.make_node("TreeEnsemble", ["y"], ["z"], domain="ai.onnx.ml", nodes_splits=large)
    whole = helper.make_model(helper.make_graph([trees], "net", [y], []))
    assert without_weights(whole, "").ByteSize() < 1000


def test_of_a_file_that_holds_a_failure_both_say_why(tiny: TinyModel, tmp_path: Path) -> None:
    source = tmp_path / "quantized.onnx"
    write_failure(source, reason="not quantized: killed & <out> of memory", transient=False)
    for path in described(source, tmp_path):
        reason = "not quantized: killed & <out> of memory"
        assert failure_in(path) == {"reason": reason, "transient": False}
    # costs that were not measured leave the graph without shares of the time
    write_failure(tmp_path / "costs.json", reason="too slow", transient=False)
    record, _ = described(tiny.simplified, tmp_path, tmp_path / "costs.json")
    assert json.loads(record.read_text())["time"] is None


def test_a_file_that_was_changed_is_refused_and_nothing_is_written(tiny, tmp_path):
    source = tmp_path / "changed.onnx"
    model = onnx.load(tiny.simplified)
    model.graph.node[0].name = "another"
    onnx.save(model, source)
    with pytest.raises(ArtifactError, match=r"changed\.onnx"):
        described(source, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["changed.onnx"]
