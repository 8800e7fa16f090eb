"""Groups and work of operators by their shapes, and the verdict over them."""

from typing import Any

import pytest
from tightrope.measure.profile.bounds import verdict
from tightrope.runtimes.operator_times import (
    OperatorTime,
    Tensor,
    group_of,
    operations_of,
    operator_time,
    per_call,
)
from tightrope.runtimes.torch.onednn_times import LINE, shapes_of, time_of

PEAKS: dict[str, Any] = {
    "operations_per_s": {"fp32": 1e12, "int8": 4e12},
    "copy_bytes_per_s": 1e10,
    "smallest_operator_s": 1e-6,
}


@pytest.mark.parametrize(
    ("kind", "group"),
    [
        ("DynamicQuantizeMatMul", "products"),
        ("QLinearMatMul", "products"),
        ("FullyConnectedQuantizedLegacy", "products"),
        ("addmm", "products"),
        ("Convolution", "products"),
        ("QuantizeLinear", "conversions"),
        ("Reorder", "conversions"),
        ("_to_copy", "conversions"),
        ("_scaled_dot_product_flash_attention_for_cpu", "attention"),
        ("SkipLayerNormalization", "normalization"),
        ("MVN", "normalization"),
        ("BiasGelu", "activations"),
        ("Transpose", "moves"),
        ("Gather", "embeddings"),
        ("Add", "elementwise"),
    ],
)
def test_operators_of_all_runtimes_fall_into_the_same_groups(kind: str, group: str) -> None:
    assert group_of(kind) == group


def test_a_fused_operator_with_two_products_is_attention() -> None:
    assert group_of("Subgraph") == "elementwise"
    assert group_of("Subgraph", products=2) == "attention"


def test_a_product_sums_over_the_last_axis_of_its_first_operand() -> None:
    left, right = Tensor((2, 5, 8), "fp32"), Tensor((8, 3), "fp32")
    found = operator_time("a", "MatMul", 1.0, [left, right], [Tensor((2, 5, 3), "fp32")])
    assert found.operations == 2 * 2 * 5 * 8 * 3
    assert found.bytes == 4 * (80 + 24 + 30)


def test_a_convolution_sums_over_its_filter() -> None:
    image, filters = Tensor((1, 6, 10, 10), "fp32"), Tensor((4, 3, 2, 2), "fp32")
    out = Tensor((1, 4, 9, 9), "fp32")
    found = operations_of("FusedConv", "products", [image, filters], [out])
    assert found == 2 * 4 * 81 * 3 * 2 * 2


@pytest.mark.parametrize("key", [(2, 4, 7, 8), (2, 4, 8, 7)])
def test_attention_multiplies_each_query_with_each_key_twice(key: tuple[int, ...]) -> None:
    query, mask = Tensor((2, 4, 7, 8), "bf16"), Tensor((2, 1, 1, 7), "bf16")
    inputs = [query, Tensor(key, "bf16"), mask]
    found = operations_of("Subgraph", "attention", inputs, [query])
    assert found == 4 * (2 * 4 * 7 * 8) * 7


def test_an_int8_product_counts_as_int8_though_its_bias_is_fp32() -> None:
    operands = [Tensor((4, 8), "int8"), Tensor((8, 8), "int8"), Tensor((8,), "fp32")]
    assert operator_time("a", "QGemm", 1.0, operands, [operands[0]]).type == "int8"


def test_operators_of_one_name_are_added_up_per_call() -> None:
    times = [OperatorTime("a", "Add", "elementwise", "fp32", one, 2.0, 4.0) for one in (1.0, 3.0)]
    other = OperatorTime("b", "Add", "elementwise", "fp32", 8.0, 1.0, 1.0)
    found = per_call([*times, other], 2)
    assert [(one.name, one.seconds, one.operations) for one in found] == [
        ("b", 4.0, 0.5),
        ("a", 2.0, 2.0),
    ]


def operator(seconds: float, operations: float, moved: float) -> OperatorTime:
    return OperatorTime("a", "MatMul", "products", "fp32", seconds, operations, moved)


def test_the_longer_bound_of_an_operator_names_its_time_and_the_rest_is_overhead() -> None:
    compute, memory = operator(4e-3, 3e9, 1e6), operator(2e-3, 1e6, 1e7)
    neither = operator(1e-3, 1e3, 1e3)
    found = verdict([compute, memory, neither], 8e-3, PEAKS)
    assert found["bound"] == "compute"
    assert found["shares"] == pytest.approx({"compute": 0.5, "memory": 0.25, "overhead": 0.25})
    assert found["outside_s"] == pytest.approx(1e-3)
    assert found["profiler_factor"] == 1.0


def test_what_a_profiler_adds_is_scaled_away() -> None:
    found = verdict([operator(4e-3, 3e9, 1e6), operator(4e-3, 1e6, 2e7)], 4e-3, PEAKS)
    assert found["profiler_factor"] == 0.5
    assert found["shares"] == pytest.approx({"compute": 0.5, "memory": 0.5, "overhead": 0.0})
    assert found["outside_s"] == 0.0


def test_a_call_without_known_operators_is_overhead() -> None:
    assert verdict([], 1e-3, PEAKS)["shares"]["overhead"] == 1.0


def test_a_fused_kernel_without_sizes_is_memory_unless_it_is_tiny() -> None:
    long, tiny = (
        OperatorTime("a", "cpp_fused_add", "fused kernels", "fp32", seconds, 0.0, 0.0)
        for seconds in (1e-4, 2e-6)
    )
    found = verdict([long, tiny], 1.02e-4, PEAKS)
    assert found["shares"]["memory"] == pytest.approx(1 / 1.02)
    assert found["shares"]["overhead"] == pytest.approx(0.02 / 1.02)


def test_attention_without_sizes_is_compute_and_what_dispatches_is_overhead() -> None:
    call, dispatch = (
        OperatorTime("a", "a", group, "fp32", 1e-4, 0.0, 0.0) for group in ("attention", "dispatch")
    )
    shares = verdict([call, dispatch], 2e-4, PEAKS)["shares"]
    assert shares == pytest.approx({"compute": 0.5, "memory": 0.0, "overhead": 0.5})


LOGGED = (
    "onednn_verbose,v1,primitive,exec,cpu,inner_product,brg_matmul:avx512_core,forward_inference,"
    "src:f32::blocked:ab::f0 wei:f32:p:blocked:AB16b64a::f0 bia:f32::blocked:a::f0 "
    "dst:f32::blocked:ab::f0,attr-scratchpad:user,,mb2ic384oc5,0.0041504"
)


def test_a_line_of_onednns_log_becomes_an_operator() -> None:
    match = LINE.search(LOGGED)
    assert match is not None
    found = time_of(match)
    assert (found.kind, found.group, found.type) == ("inner_product", "products", "fp32")
    assert found.seconds == pytest.approx(4.1504e-6)
    assert found.operations == 2 * 2 * 384 * 5


def test_sizes_of_factors_and_of_convolutions_are_read() -> None:
    assert shapes_of("64x384:384x96") == [(64, 384), (384, 96), (64, 96)]
    sizes = "mb1_g2ic6oc8_ih10oh8kh3sh1dh0ph0_iw10ow8kw3sw1dw0pw0"
    assert shapes_of(sizes) == [(1, 6, 10, 10), (8, 3, 3, 3), (1, 8, 8, 8)]
