import pytest
from tightrope.errors import WorkFailed
from tightrope.runtimes.executed import (
    Executed,
    counted,
    is_product,
    products_in,
    require_precision,
    share_of_products,
)

INT8: Executed = {
    "FullyConnected": {"int8": 14},
    "MVN": {"fp32": 5},
    "Subgraph": {"fp32": 13, "int8": 2},
}


def test_operators_are_counted_by_class_and_precision() -> None:
    found = counted([("MatMul", "int8"), ("Add", "fp32"), ("MatMul", "fp32"), ("MatMul", "int8")])
    assert found == {"Add": {"fp32": 1}, "MatMul": {"fp32": 1, "int8": 2}}


def test_the_order_in_which_operators_ran_does_not_matter() -> None:
    ran = [("MatMul", "int8"), ("Add", "fp32"), ("MatMul", "bf16"), ("Add", "bf16")]
    ours, theirs = counted(ran), counted(reversed(ran))
    assert list(ours) == list(theirs) == ["Add", "MatMul"]
    assert [list(kinds) for kinds in ours.values()] == [["bf16", "fp32"], ["bf16", "int8"]]
    assert [list(kinds) for kinds in theirs.values()] == [["bf16", "fp32"], ["bf16", "int8"]]


def test_nothing_ran_is_nothing_counted() -> None:
    assert counted([]) == {}


@pytest.mark.parametrize(
    "kind",
    [
        # OpenVINO
        "FullyConnected",
        "MatMul",
        "ScaledDotProductAttention",
        # ONNX Runtime
        "Gemm",
        "FusedMatMul",
        "QLinearMatMul",
        "QGemm",
        "MatMulIntegerToFloat",
        "DynamicQuantizeMatMul",
        "Attention",
        "MultiHeadAttention",
        "Conv",
        "FusedConv",
        # PyTorch and oneDNN
        "linear_dynamic",
        "addmm",
        "bmm",
        "_int_mm",
        "_scaled_mm",
        "triton_tem_fused_addmm_gelu_3",
        "_scaled_dot_product_flash_attention_for_cpu",
        "inner_product",
        "matmul",
        "convolution",
    ],
)
def test_what_multiplies_matrices_is_a_product(kind: str) -> None:
    assert is_product(kind)


@pytest.mark.parametrize(
    "kind",
    [
        "Convert",
        "ConvertLike",
        "Reorder",
        "Eltwise",
        "MVN",
        "Subgraph",
        "Gather",
        "Softmax",
        "QuantizeLinear",
        "DequantizeLinear",
        "DynamicQuantizeLinear",
        "LayerNormalization",
        "Add",
        "BiasGelu",
        "Transpose",
        "Cast",
        "ReduceMean",
        "reorder",
        "eltwise",
        "commutative",
    ],
)
def test_what_changes_types_or_single_values_is_no_product(kind: str) -> None:
    assert not is_product(kind)


@pytest.mark.parametrize("precision", ["int8", "int8-bf16", "int8-dynamic", "int8-fp16"])
def test_a_product_in_the_first_word_of_the_precision_is_enough(precision: str) -> None:
    require_precision(INT8, precision)
    require_precision({"MatMul": {"fp32": 2, "int8": 1}}, precision)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16", "fp16", "int8", "fp8"])
def test_a_product_in_exactly_that_precision_is_asked_for(precision: str) -> None:
    require_precision({"Gemm": {precision: 1}, "Add": {"fp32": 1}}, precision)
    for other in {"fp32", "bf16", "int8"} - {precision}:
        with pytest.raises(WorkFailed, match=f"no matrix product ran in {precision}$"):
            require_precision({"Gemm": {other: 1}, "Add": {precision: 1}}, precision)


def test_an_engine_that_fell_back_is_told_what_it_ran_in() -> None:
    executed = {"MatMul": {"fp32": 2}, "Attention": {"bf16": 1}, "Softmax": {"fp16": 1}}
    with pytest.raises(WorkFailed) as caught:
        require_precision(executed, "int8-dynamic")
    assert caught.value.reason == "ran in bf16, fp32: no matrix product ran in int8"
    assert caught.value.transient is False


def test_a_quantized_file_without_a_quantized_product_fails() -> None:
    with pytest.raises(WorkFailed, match=r"ran in fp16: .* ran in int8 or fp8$"):
        require_precision({"Gemm": {"fp16": 3}, "QuantizeLinear": {"int8": 3}}, "given")


@pytest.mark.parametrize("executed", [{}, {"Add": {"bf16": 3}, "Softmax": {"bf16": 1}}])
def test_an_engine_of_which_no_product_is_known_fails(executed: Executed) -> None:
    with pytest.raises(WorkFailed, match="ran in nothing known: no matrix product ran in bf16"):
        require_precision(executed, "bf16")


@pytest.mark.parametrize(
    ("executed", "precision"),
    [
        # ONNX Runtime that computes Q/DQ in fp32
        (
            {
                "DequantizeLinear": {"int8": 30},
                "MatMul": {"fp32": 14},
                "QuantizeLinear": {"int8": 12},
            },
            "int8",
        ),
        # OpenVINO that computes bf16 in fp32 between conversions
        ({"Convert": {"bf16": 4}, "FullyConnected": {"fp32": 14}}, "bf16"),
    ],
)
def test_conversions_around_products_in_fp32_are_a_fall_back(
    executed: Executed, precision: str
) -> None:
    with pytest.raises(WorkFailed, match=f"ran in fp32: no matrix product ran in {precision}"):
        require_precision(executed, precision)


MIXED: Executed = {
    "Gemm": {"fp16": 2, "int8": 10},
    "attention": {"fp16": 6},
    "QuantizeLinear": {"int8": 20},
    "Softmax": {"fp16": 6},
}


@pytest.mark.parametrize(
    ("executed", "precision", "found"),
    [
        (MIXED, "int8-fp16", (10, 18)),
        (MIXED, "fp16", (8, 18)),
        (MIXED, "fp8", (0, 18)),
        ({"Softmax": {"fp16": 6}}, "fp16", (0, 0)),
        # what a file was quantized to, int8 or fp8
        (MIXED, "given", (10, 18)),
        ({"Gemm": {"fp8": 3, "fp16": 1}}, "given", (3, 4)),
    ],
)
def test_products_are_counted_in_the_precision_of_the_name_and_in_all(
    executed: Executed, precision: str, found: tuple[int, int]
) -> None:
    assert products_in(executed, precision) == found
    assert share_of_products(executed, precision) == (found[0] / found[1] if found[1] else 0)
