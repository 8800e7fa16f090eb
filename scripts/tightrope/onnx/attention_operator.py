"""Replace attention of several operators by one Attention operator of opset 23."""

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tightrope.onnx.attention_heads import HeadedAttention, headed_attention
from tightrope.onnx.attention_products import Graph, attention_in
from tightrope.onnx.edit import replace_operators
from tightrope.onnx.opset import at_opset
from tightrope.onnx.trial_shapes import shapes_seen

OPSET = 23
# constant: the mask is the same for all heads
ONE_HEAD = "attention_mask_heads"


def with_attention_operators(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of `model` in which softmax(query x key + mask) x value is one operator.

    Attention of another form stays as it is; the number of those replaced is printed. The operator
    is ONNX's `Attention` of opset 23, without a scale of its own (https://onnx.ai/onnx/operators/
    onnx__Attention.html); its mask is expanded to [batch, 1, queries, keys], as ONNX Runtime wants
    it. Raises TightropeError where the opset cannot be raised.
    """
    made = at_opset(model, OPSET)
    graph, shapes = Graph(made), shapes_seen(made)
    found = [headed_attention(one, graph, shapes) for one in attention_in(made)[0]]
    known = [one for one in found if one is not None]
    print(f"attention operators: {len(known)} of {len(found)}")
    if known:
        made.graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), ONE_HEAD))
    replace_operators(made, {one.last.output[0]: operators_of(one) for one in known})
    return made


def operators_of(one: HeadedAttention) -> list[onnx.NodeProto]:
    """Return the Attention operator, after those that expand its mask."""
    name = one.last.name or one.last.output[0]
    inputs, before = [one.query, one.key, one.value], []
    if one.mask is not None:
        batch, queries, keys, sizes, mask = (
            f"{name}_{part}" for part in ("batch", "queries", "keys", "sizes", "mask")
        )
        before = [
            helper.make_node("Shape", [one.query], [batch], batch, start=0, end=1),
            helper.make_node("Shape", [one.query], [queries], queries, start=1, end=2),
            helper.make_node("Shape", [one.key], [keys], keys, start=1, end=2),
            helper.make_node("Concat", [batch, ONE_HEAD, queries, keys], [sizes], sizes, axis=0),
            helper.make_node("Expand", [one.mask, sizes], [mask], mask),
        ]
        inputs.append(mask)
    sizes_of_heads: dict[str, Any] = {"q_num_heads": one.heads, "kv_num_heads": one.heads}
    operator = helper.make_node(
        "Attention", inputs, list(one.last.output), name, scale=1.0, **sizes_of_heads
    )
    return [*before, operator]
