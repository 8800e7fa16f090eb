"""Attention of a single query projects no token, and the answers stay."""

import numpy as np
import onnx
import pytest
from encoder_layer import WIDTH, batches, encoder_layer, rows_computed, weights
from onnx import TensorProto, helper
from tightrope.onnx.file import load_onnx
from tightrope.onnx.first_token import with_unused_tokens_pruned
from tightrope.onnx.session import run_onnx
from tightrope.onnx.single_query import with_single_queries_projected
from tiny_model import TinyModel


def biased(model: onnx.ModelProto) -> onnx.ModelProto:
    """The layer with biases of its keys and values."""
    nodes = []
    for node in model.graph.node:
        nodes.append(node)
        for name in "kv":
            if node.output[0] == f"{name}_flat":
                node.output[0] = f"{name}_product"
                bias = [f"{name}_product", f"b_{name}"]
                nodes.append(helper.make_node("Add", bias, [f"{name}_flat"]))
                model.graph.initializer.append(weights(f"b_{name}", WIDTH))
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copies)
    return model


def without_mask(model: onnx.ModelProto) -> onnx.ModelProto:
    """The layer whose scores go to the Softmax as they are."""
    next(node for node in model.graph.node if node.op_type == "Softmax").input[0] = "scores"
    model.graph.node.remove(next(node for node in model.graph.node if node.op_type == "Add"))
    return model


def same_answers(one: onnx.ModelProto, other: onnx.ModelProto) -> None:
    pairs = zip(*(run_onnx(model, batches(), threads=1) for model in (one, other)), strict=True)
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


LAYERS = {
    "plain": encoder_layer,
    "with biases": lambda: biased(encoder_layer()),
    "without a mask": lambda: without_mask(encoder_layer()),
}


@pytest.mark.parametrize("name", LAYERS)
def test_no_product_with_weights_is_computed_for_every_token(name: str) -> None:
    full = LAYERS[name]()
    reduced = with_unused_tokens_pruned(full)
    made = with_single_queries_projected(reduced)
    assert 7 in rows_computed(reduced).values()
    assert 7 not in rows_computed(made).values()
    same_answers(made, full)


def test_a_bias_of_the_keys_is_left_out() -> None:
    made = with_single_queries_projected(with_unused_tokens_pruned(biased(encoder_layer())))
    names = {tensor.name for tensor in made.graph.initializer}
    assert "b_v" in names
    assert not names & {"b_k", "w_k"}


def test_weights_keep_the_names_of_their_operators() -> None:
    model = with_unused_tokens_pruned(encoder_layer())
    for node in model.graph.node:
        if node.op_type == "MatMul":
            node.name = f"the_{node.output[0]}"
    made = with_single_queries_projected(model)
    read = {node.name: node.input[1] for node in made.graph.node if node.op_type == "MatMul"}
    assert read["the_k_flat"] == "w_k_transposed"
    assert read["the_v_flat"] == "w_v"


def test_the_given_model_is_left_alone() -> None:
    model = with_unused_tokens_pruned(encoder_layer())
    before = model.SerializeToString()
    with_single_queries_projected(model)
    assert model.SerializeToString() == before


def left_alone() -> dict[str, onnx.ModelProto]:
    """Layers with several queries, or with keys that the model returns; and an old file."""
    old, read = (with_unused_tokens_pruned(encoder_layer()) for _ in range(2))
    old.opset_import[0].version = 12
    sizes = ["batch", "sequence", WIDTH]
    read.graph.output.append(helper.make_tensor_value_info("k_flat", TensorProto.FLOAT, sizes))
    return {
        "a query of every token": encoder_layer(),
        "another token": with_unused_tokens_pruned(encoder_layer(read=1)),
        "keys that are an output": read,
        "an opset before 13": old,
    }


@pytest.mark.parametrize("name", left_alone())
def test_other_attention_is_left_as_it_is(name: str) -> None:
    model = left_alone()[name]
    assert with_single_queries_projected(model) == model


def test_of_a_real_classifier_the_last_layer_projects_no_token(tiny: TinyModel) -> None:
    batch = {name: np.ones((1, 7), np.int64) for name in ("input_ids", "attention_mask")}
    rows = rows_computed(load_onnx(tiny.simplified), batch)
    # of two layers with 8 products each: those of the first
    assert sum(count == 7 for count in rows.values()) == 8
