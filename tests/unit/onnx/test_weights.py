import numpy as np
from onnx import NodeProto, helper, numpy_helper
from tightrope.onnx.file import load_onnx
from tightrope.onnx.weights import WEIGHTED, channel_axes, named_by_module, weighted_nodes
from tiny_model import TinyModel

LAYER = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
NAMES = {
    *(f"bert.encoder.layer.{number}.{part}" for number in (0, 1) for part in LAYER),
    "bert.pooler.dense",
    "classifier",
}


def test_weighted_operators_are_those_with_a_constant_second_input(tiny: TinyModel) -> None:
    model = load_onnx(tiny.simplified)
    nodes = weighted_nodes(model)
    others = [n for n in model.graph.node if n.op_type in WEIGHTED and n not in nodes]
    assert (len(nodes), len(others)) == (14, 4)
    assert set(channel_axes(model).values()) == {-1}


def test_they_are_named_as_the_modules_of_the_checkpoint(tiny: TinyModel) -> None:
    assert {node.name for node in weighted_nodes(load_onnx(tiny.simplified))} == NAMES


def test_names_stay_unique_and_tensors_as_they_are(tiny: TinyModel) -> None:
    model = load_onnx(tiny.onnx)
    tensors = [list(node.input) + list(node.output) for node in model.graph.node]
    for node in weighted_nodes(model):  # each bias is the same module's: one gets its name
        for reader in model.graph.node:
            if node.output[0] in reader.input and node.op_type == "MatMul":
                reader.input[list(reader.input).index(node.output[0]) ^ 1] = (
                    "classifier.bert.encoder.layer.0.attention.self.query.bias"
                )
    shared = named_by_module(model, prefix="classifier.")
    found = [node.name for node in shared.graph.node]
    assert len(set(found)) == len(found)
    assert found.count("bert.encoder.layer.0.attention.self.query") == 1
    again = load_onnx(tiny.onnx)
    named_by_module(again, prefix="classifier.")
    assert [list(node.input) + list(node.output) for node in again.graph.node] == tensors


def product(kind: str, name: str, weight: str, **attributes) -> NodeProto:
    return helper.make_node(kind, ["x", weight], [f"out_{name}"], name=name, **attributes)


def test_only_plain_products_with_a_matrix_count() -> None:
    sizes = {"matrix": (4, 4), "vector": (4,), "cube": (1, 4, 4)}
    nodes = [product("MatMul", weight, weight) for weight in sizes]
    nodes += [
        product("Gemm", "plain", "matrix", transB=1),
        product("Gemm", "scaled", "matrix", alpha=0.5),
        product("Gemm", "transposed", "matrix", transA=1),
    ]
    graph = helper.make_graph(
        nodes,
        "products",
        [],
        [],
        [numpy_helper.from_array(np.ones(size, np.float32), n) for n, size in sizes.items()],
    )
    found = weighted_nodes(helper.make_model(graph))
    assert [node.name for node in found] == ["matrix", "plain"]


def test_operators_without_a_name_of_their_own_are_named_by_their_output() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], [f"y{index}"]) for index in range(3)]
    nodes[1].name = nodes[2].name = "same"
    weights = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    model = helper.make_model(helper.make_graph(nodes, "unnamed", [], [], [weights]))
    named = [node.name for node in weighted_nodes(named_by_module(model, prefix=""))]
    assert named == ["MatMul_y0", "same", "MatMul_y2"]
