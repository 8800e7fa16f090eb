"""Attention in small graphs of the forms that exporters write."""

import onnx
import pytest
from onnx import parser
from tightrope.onnx.attention_products import attention_in
from tightrope.onnx.file import load_onnx
from tiny_model import TinyModel

GRAPH = """<ir_version: 10, opset_import: ["" : 21]>
net (float[b, h, s, d] q, float[b, h, d, s] k, float[b, h, s, d] v, float[b, 1, 1, s] mask)
    => (float[b, h, s, d] y) <float[1] scale = {{2.0}}, float[1] least = {{-9.0}}>
{{
    [first] scores = MatMul (q, k)
    {before}
    [softmax] weights = Softmax (masked)
    {after}
}}"""
DIVIDED = "divided = Div (scores, scale)\nmasked = Add (divided, mask)"
PLAIN = "[second] y = MatMul (weights, v)"


def graph(before: str, after: str = PLAIN) -> onnx.ModelProto:
    model = parser.parse_model(GRAPH.format(before=before, after=after))
    onnx.checker.check_model(model)
    return model


@pytest.mark.parametrize(
    "before",
    [
        DIVIDED,
        "masked = Identity (scores)",
        "biased = Add (mask, scores)\nmasked = Sub (biased, mask)",
        "cast = Cast <to = 1> (scores)\nmasked = Mul (scale, cast)",
    ],
)
def test_scores_may_be_scaled_and_masked_on_the_way_to_their_softmax(before: str) -> None:
    (found,), others = attention_in(graph(before))
    assert others == {}
    assert found.products == ("first", "second")
    assert found.measured == ("q", "k", "v")
    assert (found.softmax, found.probabilities) == ("softmax", "weights")


def test_probabilities_may_be_moved_and_are_named_where_the_product_reads_them() -> None:
    moved = "moved = Identity (weights)\n[second] y = MatMul (moved, v)"
    (found,), _ = attention_in(graph(DIVIDED, moved))
    assert found.probabilities == "moved"


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (
            "open = Greater (mask, least)\nmasked = Where (open, scores, least)",
            PLAIN,
            "its scores come from Where",
        ),
        ("masked = Identity (q)", PLAIN, "its scores come from an input"),
        (
            "more = MatMul (v, k)\nmasked = Add (scores, more)",
            PLAIN,
            "its scores are a sum of 2 products",
        ),
        (
            DIVIDED,
            "kept = Mul (weights, mask)\n[second] y = MatMul (kept, v)",
            "its result goes to no product of two tensors alone",
        ),
        (
            DIVIDED,
            "[second] mixed = MatMul (weights, v)\nseen = ReduceMax (weights)\n"
            "y = Add (mixed, seen)",
            "its result goes to no product of two tensors alone",
        ),
    ],
)
def test_another_softmax_has_a_reason(before: str, after: str, reason: str) -> None:
    assert attention_in(graph(before, after)) == ([], {"softmax": reason})


def test_each_layer_of_a_model_has_one(tiny: TinyModel) -> None:
    model = load_onnx(tiny.simplified)
    found, others = attention_in(model)
    assert (len(found), others) == (2, {})
    products = {
        node.name: list(node.input) for node in model.graph.node if node.op_type == "MatMul"
    }
    for one in found:
        read = [products[name] for name in one.products]
        assert read == [[one.query, one.key], [one.probabilities, one.value]]
