from tightrope.onnx_graph import load_onnx
from tightrope.weighted import WEIGHTED, channel_axes, named_by_module, weighted_nodes
from tiny_model import TinyModel

LAYER = (
    *("attention.self.query", "attention.self.key", "attention.self.value"),
    *("attention.output.dense", "intermediate.dense", "output.dense"),
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
