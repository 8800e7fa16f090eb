"""Operators compute the first row alone where nobody reads another, and the answers stay."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tightrope.onnx.first_token import with_unused_tokens_pruned
from tightrope.onnx.session import run_onnx
from tiny_model import TinyModel

WIDTH, HEADS = 8, 2


def weights(name: str, *shape: int) -> onnx.TensorProto:
    draw = np.random.default_rng(sum(map(ord, name)))
    return numpy_helper.from_array(draw.standard_normal(shape).astype(np.float32), name)


def integers(name: str, values: list[int] | int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def encoder_layer(*, read: int = 0) -> onnx.ModelProto:
    """One attention layer with residual, norm and feed-forward, of which token `read` is taken."""
    node = helper.make_node
    heads = [
        part
        for name, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3]))
        for part in (
            node("MatMul", ["embedded", f"w_{name}"], [f"{name}_flat"]),
            node("Reshape", [f"{name}_flat", "split"], [f"{name}_split"]),
            node("Transpose", [f"{name}_split"], [name], perm=perm),
        )
    ]
    nodes = [
        node("Shape", ["input_ids"], ["batch"], start=0, end=1),
        node("Shape", ["input_ids"], ["tokens"], start=1, end=2),
        node("Concat", ["batch", "tokens", "heads", "rest"], ["split"], axis=0),
        node("Concat", ["batch", "tokens", "rest"], ["join"], axis=0),
        node("Gather", ["table", "input_ids"], ["embedded"]),
        node("Cast", ["attention_mask"], ["bias_flat"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["bias_flat", "two_axes"], ["bias"]),
        *heads,
        node("MatMul", ["q", "k"], ["scores"]),
        node("Add", ["scores", "bias"], ["masked"]),
        node("Softmax", ["masked"], ["shares"], axis=-1),
        node("MatMul", ["shares", "v"], ["mixed"]),
        node("Transpose", ["mixed"], ["back"], perm=[0, 2, 1, 3]),
        node("Reshape", ["back", "join"], ["joined"]),
        node("Add", ["joined", "embedded"], ["residual"]),
        node("LayerNormalization", ["residual", "scale"], ["normed"], axis=-1),
        node("MatMul", ["normed", "w_up"], ["up"]),
        node("Gelu", ["up"], ["bent"]),
        node("MatMul", ["bent", "w_down"], ["down"]),
        node("Add", ["down", "normed"], ["last"]),
        node("Gather", ["last", "read"], ["token"], axis=1),
        node("MatMul", ["token", "w_classes"], ["logits"]),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
        for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])
    constants = [
        weights("table", 20, WIDTH),
        *(weights(f"w_{name}", WIDTH, WIDTH) for name in "qkv"),
        weights("w_up", WIDTH, 2 * WIDTH),
        weights("w_down", 2 * WIDTH, WIDTH),
        weights("w_classes", WIDTH, 3),
        weights("scale", WIDTH),
        integers("heads", [HEADS]),
        integers("rest", [-1]),
        integers("two_axes", [1, 2]),
        integers("read", read),
    ]
    graph = helper.make_graph(nodes, "layer", inputs, [output], constants)
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


def batches() -> list[dict[str, np.ndarray]]:
    draw = np.random.default_rng(0)
    found = []
    for batch, sequence in [(1, 1), (1, 7), (3, 5), (4, 16)]:
        mask = np.ones((batch, sequence), np.int64)
        mask[-1, sequence // 2 + 1 :] = 0
        ids = draw.integers(0, 20, (batch, sequence))
        found.append({"input_ids": ids, "attention_mask": mask})
    return found


def rows_computed(
    model: onnx.ModelProto, batch: dict[str, np.ndarray] | None = None
) -> dict[str, int]:
    """For each MatMul by its output how many rows it computes for one text of 7 tokens."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    wanted = [node.output[0] for node in copy.graph.node if node.op_type == "MatMul"]
    for name in wanted:
        if name != "logits":
            copy.graph.output.append(onnx.ValueInfoProto(name=name))
    import onnxruntime

    session = onnxruntime.InferenceSession(
        onnx.shape_inference.infer_shapes(copy).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    outputs = session.run(wanted, batch or batches()[1])
    return {name: array.shape[-2] for name, array in zip(wanted, outputs, strict=True)}


def test_the_answers_stay_whatever_the_shape() -> None:
    model = encoder_layer()
    before = run_onnx(model, batches(), threads=1)
    after = run_onnx(with_unused_tokens_pruned(model), batches(), threads=1)
    for ours, theirs in zip(after, before, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_only_keys_and_values_are_computed_for_every_token() -> None:
    model = encoder_layer()
    full, reduced = rows_computed(model), rows_computed(with_unused_tokens_pruned(model))
    tokens = {"q_flat", "k_flat", "v_flat", "scores", "mixed", "up", "down"}
    assert {name for name, rows in full.items() if rows == 7} == tokens
    assert {name for name, rows in reduced.items() if rows == 7} == {"k_flat", "v_flat"}


@pytest.mark.parametrize(
    "bent",
    [
        [
            helper.make_node("Clip", ["up", "below", "above"], ["cut"]),
            helper.make_node("Abs", ["cut"], ["size"]),
            helper.make_node("Max", ["size", "below"], ["bent"]),
        ],
        [
            helper.make_node("HardSwish", ["up"], ["swished"]),
            helper.make_node("Min", ["above", "swished"], ["bent"]),
        ],
        [helper.make_node("Clip", ["up"], ["bent"])],
    ],
)
def test_other_activations_than_gelu_are_computed_for_the_first_token_too(
    bent: list[onnx.NodeProto],
) -> None:
    model = encoder_layer()
    place = next(i for i, node in enumerate(model.graph.node) if node.op_type == "Gelu")
    nodes = [*model.graph.node[:place], *bent, *model.graph.node[place + 1 :]]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    for name, bound in (("below", -0.5), ("above", 0.75)):
        constant = numpy_helper.from_array(np.array(bound, np.float32), name)
        model.graph.initializer.append(constant)
    reduced = with_unused_tokens_pruned(model)
    assert rows_computed(reduced)["down"] == 1
    pairs = zip(*(run_onnx(one, batches(), threads=1) for one in (reduced, model)), strict=True)
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_the_model_that_was_given_is_left_alone() -> None:
    model = encoder_layer()
    before = model.SerializeToString()
    with_unused_tokens_pruned(model)
    assert model.SerializeToString() == before


def test_another_token_than_the_first_is_left_as_it_is() -> None:
    model = encoder_layer(read=1)
    assert with_unused_tokens_pruned(model) == model


def test_a_mean_over_all_tokens_is_left_as_it_is() -> None:
    model = encoder_layer()
    gather = next(node for node in model.graph.node if node.output[0] == "token")
    gather.op_type = "ReduceMean"
    gather.input[1] = "one_axis"
    del gather.attribute[:]
    gather.attribute.append(helper.make_attribute("keepdims", 0))
    model.graph.initializer.append(integers("one_axis", [1]))
    assert with_unused_tokens_pruned(model) == model


def test_what_another_output_reads_is_computed_in_full() -> None:
    model = encoder_layer()
    model.graph.output.append(
        helper.make_tensor_value_info("up", TensorProto.FLOAT, ["batch", "sequence", 2 * WIDTH])
    )
    reduced = rows_computed(with_unused_tokens_pruned(model))
    assert reduced["up"] == reduced["mixed"] == 7
    assert reduced["down"] == 1


def test_of_a_real_classifier_the_whole_last_layer_but_keys_and_values_is_reduced(
    tiny: TinyModel,
) -> None:
    from tightrope.onnx.file import load_onnx, simplified

    full = simplified(load_onnx(tiny.onnx))
    batch = {name: np.ones((1, 7), np.int64) for name in ("input_ids", "attention_mask")}
    rows = [rows_computed(model, batch) for model in (full, load_onnx(tiny.simplified))]
    # of two layers with 8 products each
    assert [sum(count == 7 for count in one.values()) for one in rows] == [16, 10]


def test_the_digest_of_a_saved_file_is_no_matter(tmp_path: Path) -> None:
    from tightrope.onnx.file import load_onnx, max_sequence, save_onnx, set_max_sequence

    model = encoder_layer()
    set_max_sequence(model, 16)
    save_onnx(with_unused_tokens_pruned(model), tmp_path / "model.onnx")
    assert max_sequence(load_onnx(tmp_path / "model.onnx")) == 16


PADDED = [
    helper.make_node("Gather", ["table", "input_ids"], ["looked"]),
    helper.make_node("Cast", ["attention_mask"], ["weight"], to=TensorProto.FLOAT),
    helper.make_node("Unsqueeze", ["weight", "last"], ["column"]),
    helper.make_node("Mul", ["looked", "column"], ["x"]),
]
SIZES = [
    helper.make_node("Shape", ["input_ids"], ["texts"], start=0, end=1),
    helper.make_node("Shape", ["input_ids"], ["tokens"], start=1, end=2),
    helper.make_node("Concat", ["texts", "tokens", "width"], ["whole"], axis=0),
]


def branching() -> list[onnx.NodeProto]:
    """y and the largest of all its rows, the smallest where there are few tokens."""
    output = helper.make_tensor_value_info("extreme", TensorProto.FLOAT, ["batch", 1, WIDTH])
    branches = {
        name: helper.make_graph(
            [helper.make_node(kind, ["y", "middle"], ["extreme"])], kind, [], [output]
        )
        for name, kind in (("then_branch", "ReduceMax"), ("else_branch", "ReduceMin"))
    }
    return [
        helper.make_node("Tanh", ["x"], ["y"]),
        helper.make_node("Shape", ["input_ids"], ["count"], start=1, end=2),
        helper.make_node("Squeeze", ["count"], ["number"]),
        helper.make_node("Greater", ["number", "many"], ["long"]),
        helper.make_node("If", ["long"], ["chosen"], **branches),
        helper.make_node("Add", ["y", "chosen"], ["last_of_it"]),
    ]


def odd_graphs() -> dict[str, list[onnx.NodeProto]]:
    """Graphs whose last tensor is `last_of_it`, [batch, any, WIDTH]."""
    node = helper.make_node
    end = ["last_of_it"]
    return {
        "a branch reads it": branching(),
        "flattened": [
            *SIZES,
            node("Reshape", ["x", "flat"], ["rows"]),
            node("Gemm", ["rows", "square"], ["product"]),
            node("Reshape", ["product", "whole"], ["back"]),
            node("Add", ["back", "x"], end),
        ],
        "heads that are not turned back": [
            *SIZES,
            node("Reshape", ["x", "split"], ["heads"]),
            node("Transpose", ["heads"], ["turned"], perm=[0, 2, 1, 3]),
            node("Reshape", ["turned", "whole"], end),
        ],
        "a shape of one part": [
            node("Shape", ["x"], ["shape"]),
            node("Concat", ["shape"], ["copy"], axis=0),
            node("Reshape", ["x", "copy"], end),
        ],
        "turned without a permutation": [
            node("Transpose", ["x"], ["turned"]),
            node("Tanh", ["turned"], ["bent"]),
            node("Transpose", ["bent"], end),
        ],
        "a factor without batches": [
            node("Transpose", ["x"], ["turned"], perm=[0, 2, 1]),
            node("MatMul", ["square", "turned"], ["product"]),
            node("MatMul", ["product", "x"], end),
        ],
        "over all tokens": [node("Softmax", ["x"], end, axis=1)],
        "an operator of another's": [node("Tanh", ["x"], end, domain="mine")],
    }


@pytest.mark.parametrize("name", odd_graphs())
def test_the_answers_stay_whatever_the_graph(name: str) -> None:
    nodes = [
        *PADDED,
        *odd_graphs()[name],
        helper.make_node("Gather", ["last_of_it", "read"], ["token"], axis=1),
        helper.make_node("MatMul", ["token", "w_classes"], ["logits"]),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
        for name in ("input_ids", "attention_mask")
    ]
    constants = [
        weights("table", 20, WIDTH),
        weights("square", WIDTH, WIDTH),
        weights("w_classes", WIDTH, 3),
        *(integers("read", 0), integers("many", 4)),
        *(integers("middle", [1]), integers("last", [2]), integers("flat", [-1, WIDTH])),
        *(integers("width", [WIDTH]), integers("split", [0, 0, HEADS, WIDTH // HEADS])),
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])
    graph = helper.make_graph(nodes, "odd", inputs, [output], constants)
    sums = helper.make_node("CumSum", ["given", "axis"], ["sums"], reverse=1)
    axis = helper.make_node("Constant", [], ["axis"], value=integers("one", 1))
    opset = helper.make_opsetid("", 21)
    mine = helper.make_function("mine", "Tanh", ["given"], ["sums"], [axis, sums], [opset])
    opsets = [opset, helper.make_opsetid("mine", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=[mine])
    onnx.checker.check_model(model)
    before = run_onnx(model, batches(), threads=1)
    after = run_onnx(with_unused_tokens_pruned(model), batches(), threads=1)
    for ours, theirs in zip(after, before, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
