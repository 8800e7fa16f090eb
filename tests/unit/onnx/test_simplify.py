"""The first row alone is computed where nobody reads another, a factor behind a linear layer
becomes part of its weights, and the answers stay."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx_text import HEAD, drawn, kinds, onnx_model
from tightrope.onnx.session import run_onnx
from tightrope.onnx.simplify import with_scales_folded, with_unused_tokens_pruned

INPUTS = """net (int64[batch, sequence] input_ids, int64[batch, sequence] attention_mask)
    => (float[batch, 3] logits)"""
# one attention layer with residual, norm and feed-forward, of which a token is taken
LAYER = (
    INPUTS
    + """ {{
    texts = Shape <start = 0, end = 1> (input_ids)
    tokens = Shape <start = 1, end = 2> (input_ids)
    split = Concat <axis = 0> (texts, tokens, heads, rest)
    join = Concat <axis = 0> (texts, tokens, rest)
    embedded = Gather (table, input_ids)
    bias_flat = Cast <to = 1> (attention_mask)
    bias = Unsqueeze (bias_flat, two_axes)
    q_flat = MatMul (embedded, w_q)
    q_split = Reshape (q_flat, split)
    q = Transpose <perm = [0, 2, 1, 3]> (q_split)
    k_flat = MatMul (embedded, w_k)
    k_split = Reshape (k_flat, split)
    k = Transpose <perm = [0, 2, 3, 1]> (k_split)
    v_flat = MatMul (embedded, w_v)
    v_split = Reshape (v_flat, split)
    v = Transpose <perm = [0, 2, 1, 3]> (v_split)
    scores = MatMul (q, k)
    masked = Add (scores, bias)
    shares = Softmax <axis = -1> (masked)
    mixed = MatMul (shares, v)
    back = Transpose <perm = [0, 2, 1, 3]> (mixed)
    joined = Reshape (back, join)
    residual = Add (joined, embedded)
    normed = LayerNormalization <axis = -1> (residual, scale)
    up = MatMul (normed, w_up)
    {bent}
    down = MatMul (bent, w_down)
    last = Add (down, normed)
    {token}
    logits = MatMul (token, w_classes)
}}"""
)
GELU, FIRST = "bent = Gelu (up)", "token = Gather <axis = 1> (last, read)"
SHAPES = {"table": (20, 8), "scale": (8,), "w_classes": (8, 3), "w_up": (8, 16), "w_down": (16, 8)}
SHAPES |= {f"w_{name}": (8, 8) for name in "qkv"}


def encoder_layer(*, bent: str = GELU, token: str = FIRST, read: int = 0) -> onnx.ModelProto:
    weights = {name: drawn(*shape, seed=n) for n, (name, shape) in enumerate(SHAPES.items())}
    numbers = {"heads": [2], "rest": [-1], "two_axes": [1, 2], "read": read, "axis": [1]}
    bounds = {"below": -0.5, "above": 0.75}
    model = onnx_model(LAYER.format(bent=bent, token=token), **weights, **numbers, **bounds)
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


def require_same_answers(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with unused tokens pruned."""
    reduced = with_unused_tokens_pruned(model)
    pairs = zip(*(run_onnx(one, batches(), threads=1) for one in (reduced, model)), strict=True)
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    return reduced


def products_of_every_token(model: onnx.ModelProto) -> set[str]:
    """The outputs of products that are computed for each of 7 tokens of a text."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    names = [node.output[0] for node in copy.graph.node if node.op_type == "MatMul"]
    copy.graph.output.extend(onnx.ValueInfoProto(name=one) for one in names if one != "logits")
    content = onnx.shape_inference.infer_shapes(copy).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    arrays = session.run(names, batches()[1])
    return {name for name, array in zip(names, arrays, strict=True) if array.shape[-2] == 7}


@pytest.mark.parametrize(
    "bent",
    [
        "cut = Clip (up, below, above)\nsize = Abs (cut)\nbent = Max (size, below)",
        "swished = HardSwish (up)\nbent = Min (above, swished)",
    ],
)
def test_other_activations_than_gelu_are_computed_for_the_first_token_too(bent: str) -> None:
    reduced = require_same_answers(encoder_layer(bent=bent))
    assert products_of_every_token(reduced) == {"k_flat", "v_flat"}


@pytest.mark.parametrize(
    "options", [{"read": 1}, {"token": "token = ReduceMean <keepdims = 0> (last, axis)"}]
)
def test_another_token_than_the_first_and_a_mean_are_left_as_they_are(options: dict) -> None:
    model = encoder_layer(**options)
    assert with_unused_tokens_pruned(model) == model


ODD = (
    INPUTS
    + """ {{
    looked = Gather (table, input_ids)
    weight = Cast <to = 1> (attention_mask)
    column = Unsqueeze (weight, two)
    x = Mul (looked, column)
    texts = Shape <start = 0, end = 1> (input_ids)
    tokens = Shape <start = 1, end = 2> (input_ids)
    whole = Concat <axis = 0> (texts, tokens, width)
    {}
    token = Gather <axis = 1> (odd, read)
    logits = MatMul (token, w_classes)
}}
<domain: "mine", opset_import: ["" : 21]>
Tanh (given) => (sums) {{
    axis = Constant <value = int64 {{1}}> ()
    sums = CumSum <reverse = 1> (given, axis)
}}"""
)
# their last tensor is `odd`, [batch, any, 8]
ODD_GRAPHS = {
    "a branch reads it": """y = Tanh (x)
        number = Squeeze (tokens)
        long = Greater (number, many)
        chosen = If (long) <
            then_branch = most () => (float[batch, 1, 8] high) { high = ReduceMax (y, one) },
            else_branch = least () => (float[batch, 1, 8] low) { low = ReduceMin (y, one) }
        >
        odd = Add (y, chosen)""",
    "flattened": """rows = Reshape (x, flat)
        product = Gemm (rows, square)
        back = Reshape (product, whole)
        odd = Add (back, x)""",
    "heads that are not turned back": """heads = Reshape (x, split)
        turned = Transpose <perm = [0, 2, 1, 3]> (heads)
        odd = Reshape (turned, whole)""",
    "a shape of one part": """shape = Shape (x)
        copy = Concat <axis = 0> (shape)
        odd = Reshape (x, copy)""",
    "a factor without batches": """turned = Transpose <perm = [0, 2, 1]> (x)
        product = MatMul (square, turned)
        odd = MatMul (product, x)""",
    "over all tokens": "odd = Softmax <axis = 1> (x)",
    "an operator of another's": "odd = mine.Tanh (x)",
}


@pytest.mark.parametrize("name", ODD_GRAPHS)
def test_the_answers_stay_whatever_the_graph(name: str) -> None:
    numbers = {"read": 0, "many": 4, "one": [1], "two": [2], "flat": [-1, 8], "width": [8]}
    weights = {"table": drawn(20, 8), "square": drawn(8, 8), "w_classes": drawn(8, 3)}
    head = HEAD.replace("]>", ', "mine" : 1]>')
    text = ODD.format(ODD_GRAPHS[name])
    model = onnx_model(text, head, split=[0, 0, 2, 4], **numbers, **weights)
    onnx.checker.check_model(model)
    require_same_answers(model)


SCALED = """net (float[2, 3, 4] x) => (float[] y) {{
    product = MatMul (x, weight)
    layer = Add (product, bias)
    {}
}}"""
FOLDED = {
    "values only move between": """split = Reshape (layer, heads)
        query = Transpose <perm = [0, 2, 1, 3]> (split)
        scaled = Mul (query, factor)
        y = Relu (scaled)""",
    "another layer reads the weights, as in ALBERT": """scaled = Mul (factor, layer)
        product_2 = MatMul (x, weight)
        layer_2 = Add (product_2, bias)
        y = Sub (scaled, layer_2)""",
}
STAYING = {
    "a factor per channel": "scaled = Mul (layer, factors)\ny = Relu (scaled)",
    "no layer before it": "scaled = Mul (x, factor)\ny = Add (scaled, layer)",
    "an activation between": "positive = Relu (layer)\nz = Mul (positive, factor)\ny = Neg (z)",
    "a layer that others read": "scaled = Mul (layer, factor)\ny = Add (scaled, layer)",
    "moved values that others read": """split = Reshape (layer, heads)
        scaled = Mul (split, factor)
        y = Add (scaled, split)""",
    "the output of the model": "y = Mul (layer, factor)",
}


def scaled_layer(lines: str) -> onnx.ModelProto:
    numbers = {"weight": drawn(4, 4), "bias": drawn(4, seed=1), "factors": drawn(4, seed=2)}
    return onnx_model(SCALED.format(lines), factor=0.3, heads=[2, 3, 2, 2], **numbers)


def output(model: onnx.ModelProto) -> np.ndarray:
    return run_onnx(model, [{"x": drawn(2, 3, 4, seed=3)}], threads=1)[0]


@pytest.mark.parametrize("why", FOLDED)
def test_the_factor_is_gone_and_the_outputs_stay(why: str) -> None:
    model = scaled_layer(FOLDED[why])
    folded = with_scales_folded(model)
    assert kinds(folded) == [kind for kind in kinds(model) if kind != "Mul"] != kinds(model)
    np.testing.assert_allclose(output(folded), output(model), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("why", STAYING)
def test_another_factor_stays(why: str) -> None:
    model = scaled_layer(STAYING[why])
    folded = with_scales_folded(model)
    assert kinds(folded) == kinds(model)
    np.testing.assert_array_equal(output(folded), output(model))
