import numpy as np
from onnx_text import onnx_model
from tightrope.onnx.edit import named_by_module, weighted_nodes

TIED = """net (float[n, 4] x) => (float[n, 4] y) {
    [a] p = MatMul (x, w)
    q = Add (p, layer_bias)
    [b] r = MatMul (q, w)
    y = Add (r, layer_bias)
}"""


def test_operators_are_named_by_their_module_or_output_and_names_stay_unique() -> None:
    """Two of them read one bias; others have no name of their own."""
    model = onnx_model(TIED, w=np.ones((4, 4)), layer_bias=np.ones(4))
    model.graph.initializer[1].name = "layer.bias"
    for node in model.graph.node:
        node.input[:] = [name.replace("_bias", ".bias") for name in node.input]
    nodes = named_by_module(model, prefix="").graph.node
    assert [node.name for node in nodes] == ["layer", "Add_q", "b", "Add_y"]
    assert [node.output[0] for node in nodes] == ["p", "q", "r", "y"]
    lines = "a = MatMul (x, w)\n[same] b = MatMul (x, w)\n[same] y = MatMul (x, w)"
    model = onnx_model(f"net (float[n, 4] x) => (float[n, 4] y) {{ {lines} }}", w=np.ones((4, 4)))
    named = [node.name for node in weighted_nodes(named_by_module(model, prefix=""))]
    assert named == ["MatMul_a", "same", "MatMul_y"]


PRODUCTS = """net (float[n, 4] x) => (float[n, 4] y) {
    [matrix] a = MatMul (x, weight)
    [vector] b = MatMul (x, row)
    [cube] c = MatMul (x, block)
    [plain] d = Gemm <transB = 1> (x, weight)
    [scaled] e = Gemm <alpha = 0.5> (x, weight)
    [transposed] y = Gemm <transA = 1> (x, weight)
}"""


def test_only_plain_products_with_a_matrix_count() -> None:
    sizes = {"weight": (4, 4), "row": (4,), "block": (1, 4, 4)}
    model = onnx_model(PRODUCTS, **{name: np.ones(size) for name, size in sizes.items()})
    assert [node.name for node in weighted_nodes(model)] == ["matrix", "plain"]
