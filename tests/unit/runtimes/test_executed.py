import pytest
from tightrope.errors import WorkFailed
from tightrope.runtimes.executed import (
    Executed,
    is_product,
    products_in,
    require_precision,
    share_of_products,
    unknown_types,
)

OF_OPENVINO = "FullyConnected MatMul ScaledDotProductAttention"
OF_ONNXRUNTIME = "Gemm FusedMatMul QLinearMatMul MatMulIntegerToFloat DynamicQuantizeMatMul"
OF_ONNXRUNTIME += " MultiHeadAttention FusedConv"
OF_PYTORCH = "linear_dynamic addmm bmm _int_mm _scaled_mm triton_tem_fused_addmm_gelu_3"
OF_PYTORCH += " _scaled_dot_product_flash_attention_for_cpu"
OF_ONEDNN = "inner_product matmul convolution"
OTHERS = "Convert ConvertLike Reorder Eltwise MVN Subgraph Gather Softmax QuantizeLinear"
OTHERS += " DequantizeLinear DynamicQuantizeLinear LayerNormalization BiasGelu Transpose Cast"
OTHERS += " ReduceMean commutative"


def test_what_multiplies_matrices_is_a_product_and_conversions_are_none() -> None:
    products = " ".join((OF_OPENVINO, OF_ONNXRUNTIME, OF_PYTORCH, OF_ONEDNN)).split()
    assert [kind for kind in products if not is_product(kind)] == []
    assert [kind for kind in OTHERS.split() if is_product(kind)] == []


@pytest.mark.parametrize(
    ("executed", "precision", "ran"),
    [
        ({"MatMul": {"fp32": 2}, "Attention": {"bf16": 1}}, "int8-dynamic", "bf16, fp32"),
        ({"Gemm": {"fp16": 3}, "QuantizeLinear": {"int8": 3}}, "given", "fp16"),
        ({"gemm": {"fp32": 2}}, "int8-fp16", "fp32"),
        # OpenVINO's bf16 between conversions
        ({"Convert": {"bf16": 4}, "FullyConnected": {"fp32": 14}}, "bf16", "fp32"),
    ],
)
def test_a_fallback_is_told_what_it_ran_in(executed: Executed, precision: str, ran: str) -> None:
    with pytest.raises(WorkFailed) as caught:
        require_precision(executed, precision)
    wanted = {"given": "int8 or fp8"}.get(precision, precision.partition("-")[0])
    assert caught.value.reason == f"ran in {ran}: no matrix product ran in {wanted}"
    assert not caught.value.transient


@pytest.mark.parametrize(
    ("executed", "unknown"),
    [
        ({"gemm": {"fp32": 2, "Weird8": 1}, "kgen": {"Other": 4}}, ["Weird8"]),
        ({"Add": {"bf16": 3}, "Softmax": {"Int64": 1}}, ["no matrix product"]),
        ({"gemm": {"int8": 1, "fp16": 2, "fp8": 1}, "Reformat": {"Weird8": 9}}, []),
    ],
)
def test_types_that_nobody_knows_fail_no_engine(executed: Executed, unknown: list[str]) -> None:
    for precision in ("fp16", "int8-fp16", "given"):
        require_precision(executed, precision)
    assert unknown_types(executed) == unknown


MIXED: Executed = {
    **{"Gemm": {"fp16": 2, "int8": 10}, "attention": {"fp16": 6}},
    **{"QuantizeLinear": {"int8": 20}, "Softmax": {"fp16": 6}},
}


@pytest.mark.parametrize(
    ("executed", "precision", "found"),
    [
        (MIXED, "int8-fp16", (10, 18)),
        (MIXED, "fp16", (8, 18)),
        ({"MatMul": {"fp32": 2, "int8": 1}}, "int8-dynamic", (1, 3)),
        (MIXED, "fp8", (0, 18)),
        ({"Softmax": {"fp16": 6}}, "fp16", (0, 0)),
        # what a file was quantized to, int8 or fp8
        (MIXED, "given", (10, 18)),
        ({"Gemm": {"fp8": 3, "fp16": 1}}, "given", (3, 4)),
    ],
)
def test_products_are_counted_in_the_precision_of_the_name_and_in_all(executed, precision, found):
    assert products_in(executed, precision) == found
    if found[0]:  # one in the first word of the precision is enough
        require_precision(executed, precision)
    assert share_of_products(executed, precision) == (found[0] / found[1] if found[1] else 0)
