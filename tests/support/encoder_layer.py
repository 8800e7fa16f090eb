"""A small encoder layer in ONNX, of which the classifier reads one token, and what it computes."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

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
    session = onnxruntime.InferenceSession(
        onnx.shape_inference.infer_shapes(copy).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    outputs = session.run(wanted, batch or batches()[1])
    return {name: array.shape[-2] for name, array in zip(wanted, outputs, strict=True)}
