"""Attention in small graphs of the forms that exporters write."""

import onnx
import pytest
from onnx_text import onnx_model
from tightrope.onnx.attention import Attention, attention_in

GRAPH = """
net (float[b, h, s, d] q, float[b, h, d, s] k, float[b, h, s, d] v, float[b, 1, 1, s] mask)
    => (float[b, h, s, d] y) <float[1] scale = {{2.0}}, float[1] least = {{-9.0}}>
{{
    [first] scores = MatMul (q, k)
    {before}
    [softmax] weights = Softmax (masked)
    {after}
}}"""
DIVIDED = "divided = Div (scores, scale)\nmasked = Add (divided, mask)"
NO_PRODUCT = "its result goes to no product of two tensors alone"
PLAIN = "[second] y = MatMul (weights, v)"


def graph(before: str, after: str = PLAIN) -> onnx.ModelProto:
    model = onnx_model(GRAPH.format(before=before, after=after))
    onnx.checker.check_model(model)
    return model


@pytest.mark.parametrize(
    ("before", "after", "probabilities"),
    [
        (DIVIDED, PLAIN, "weights"),
        ("biased = Add (mask, scores)\nmasked = Sub (biased, mask)", PLAIN, "weights"),
        ("cast = Cast <to = 1> (scores)\nmasked = Mul (scale, cast)", PLAIN, "weights"),
        (DIVIDED, "moved = Identity (weights)\n[second] y = MatMul (moved, v)", "moved"),
    ],
)
def test_scores_may_be_scaled_and_masked(before: str, after: str, probabilities: str) -> None:
    found = Attention("softmax", ("first", "second"), "q", "k", probabilities, "v")
    assert attention_in(graph(before, after)) == ([found], {})


TWO = "more = MatMul (v, k)\nmasked = Add (scores, more)"
WHERE = "open = Greater (mask, least)\nmasked = Where (open, scores, least)"
SHARED = "[second] mixed = MatMul (weights, v)\nseen = ReduceMax (weights)\ny = Add (mixed, seen)"


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        (WHERE, PLAIN, "its scores come from Where"),
        ("masked = Identity (q)", PLAIN, "its scores come from an input"),
        (TWO, PLAIN, "its scores are a sum of 2 products"),
        (DIVIDED, "kept = Mul (weights, mask)\n[second] y = MatMul (kept, v)", NO_PRODUCT),
        (DIVIDED, SHARED, NO_PRODUCT),
    ],
)
def test_another_softmax_has_a_reason(before: str, after: str, reason: str) -> None:
    assert attention_in(graph(before, after)) == ([], {"softmax": reason})
