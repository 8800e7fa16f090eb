"""Groups and work of operators by their shapes, and the verdict over them."""

import time

import pytest
import torch
from tightrope.engines.inductor import LINE, shapes_of, time_of
from tightrope.measure import profile_inputs
from tightrope.measure.profile import add_verdict
from tightrope.records.profile import OperatorTime, Peaks, ProfiledShape
from tightrope.runtimes import operator_times

RATES = {"fp32": 1e12, "int8": 4e12}
KNOWN = {"device": "cpu", "threads": 1, "copy_bytes_per_s": 1e10, "smallest_operator_s": 1e-6}
PEAKS = Peaks(operations_per_s=RATES, **KNOWN)


def test_operators_have_groups_and_types_and_are_added_up_per_call() -> None:
    products = "DynamicQuantizeMatMul QLinearMatMul FullyConnectedQuantizedLegacy addmm Convolution"
    for group, kinds in {
        "products": products,
        "conversions": "QuantizeLinear Reorder _to_copy",
        "attention": "_scaled_dot_product_flash_attention_for_cpu",
        "normalization": "SkipLayerNormalization MVN",
        "activations": "BiasGelu",
        "moves": "Transpose",
        "embeddings": "Gather",
        "elementwise": "Add Subgraph",
    }.items():
        assert {operator_times.group_of(kind) for kind in kinds.split()} == {group}
    # fused, with two products
    assert operator_times.group_of("Subgraph", products=2) == "attention"
    # an int8 product counts as int8 though its bias is fp32
    known = {(8,): "fp32", (4, 8): "int8", (8, 8): "int8"}
    operands = [operator_times.Tensor(*one) for one in known.items()]
    assert operator_times.operator_time("a", "QGemm", 1.0, operands, [operands[1]]).type == "int8"
    times = [OperatorTime("a", "Add", "elementwise", "fp32", one, 2.0, 4.0) for one in (1.0, 3.0)]
    other = OperatorTime("b", "Add", "elementwise", "fp32", 8.0, 1.0, 1.0)
    found = operator_times.per_call([*times, other], 2)
    sums = [(one.name, one.seconds, one.operations) for one in found]
    assert sums == [("b", 4.0, 0.5), ("a", 2.0, 2.0)]


QUERY, MASK = (2, 4, 7, 8), (2, 1, 1, 7)


@pytest.mark.parametrize(
    ("kind", "group", "inputs", "output", "operations"),
    [
        # over the last axis of the first operand
        ("MatMul", None, [(2, 5, 8), (8, 3)], (2, 5, 3), 2 * 2 * 5 * 8 * 3),
        # over a filter
        ("FusedConv", None, [(1, 6, 10, 10), (4, 3, 2, 2)], (1, 4, 9, 9), 2 * 4 * 81 * 3 * 2 * 2),
        # each query with each key twice, transposed or not
        ("Subgraph", "attention", [QUERY, QUERY, MASK], QUERY, 4 * (2 * 4 * 7 * 8) * 7),
        ("Subgraph", "attention", [QUERY, (2, 4, 8, 7), MASK], QUERY, 4 * (2 * 4 * 7 * 8) * 7),
    ],
)
def test_operations_and_bytes_follow_from_shapes(kind, group, inputs, output, operations) -> None:
    operands = [operator_times.Tensor(shape, "bf16") for shape in inputs]
    found = operator_times.operator_time(
        "a", kind, 1.0, operands, [operator_times.Tensor(output, "fp32")], group=group
    )
    assert (found.operations, found.type) == (operations, "bf16")
    given = operator_times.Tensor(output, "fp32")
    assert found.bytes == sum(one.bytes for one in [*operands, given])
    assert operator_times.Tensor((2, 5, 8), "bf16").bytes == 2 * 80


def operator(seconds, operations=0.0, moved=0.0, group="products") -> OperatorTime:
    return OperatorTime("a", "a", group, "fp32", seconds, operations, moved)


COMPUTE, MEMORY = operator(4e-3, 3e9, 1e6), operator(2e-3, 1e6, 1e7)
FUSED, ATTENTION = operator(1e-4, group="fused kernels"), operator(1e-4, group="attention")


def test_shares_are_computes_memorys_and_overheads() -> None:
    for operators, call_s, shares, outside_s, factor in (
        # the longer bound names the time, the rest is overhead
        ([COMPUTE, MEMORY, operator(1e-3, 1e3, 1e3)], 8e-3, (0.5, 0.25, 0.25), 1e-3, 1.0),
        # what a profiler adds is scaled away
        ([COMPUTE, operator(4e-3, 1e6, 2e7)], 4e-3, (0.5, 0.5, 0.0), 0.0, 0.5),
        ([], 1e-3, (0.0, 0.0, 1.0), 1e-3, 1.0),
        # of unknown sizes: a fused kernel unless it is tiny, attention, what dispatches
        ([FUSED, operator(2e-6, group="fused kernels")], 1.02e-4, (0.0, 50, 1), 0.0, 1.0),
        ([ATTENTION, operator(1e-4, group="dispatch")], 2e-4, (0.5, 0.0, 0.5), 0.0, 1.0),
    ):
        shape = ProfiledShape(batch=1, call_s=call_s, padding=0.0, finish_s=0.0)
        add_verdict(shape, operators, PEAKS)
        expected = [one / sum(shares) for one in shares]
        assert list(shape.shares.values()) == pytest.approx(expected)
        assert list(shape.shares) == ["compute", "memory", "overhead"]
        assert shape.shares[shape.bound] == max(shape.shares.values())
        assert shape.outside_s == pytest.approx(outside_s, abs=1e-9)
        assert shape.profiler_factor == pytest.approx(factor)


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
    # sizes of factors and of convolutions
    assert shapes_of("64x384:384x96") == [(64, 384), (384, 96), (64, 96)]
    sizes = "mb1_g2ic6oc8_ih10oh8kh3sh1dh0ph0_iw10ow8kw3sw1dw0pw0"
    assert shapes_of(sizes) == [(1, 6, 10, 10), (8, 3, 3, 3), (1, 8, 8, 8)]


def test_a_peak_waits_for_calls_that_return_before_they_are_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on a GPU; until the clock said 0.1 s hundreds of thousands of them would be begun."""
    begun: list[float] = []

    def wait() -> None:
        assert len(begun) <= 5
        time.sleep(sum(begun))
        begun.clear()

    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "synchronize", wait)
    assert profile_inputs.seconds_of(lambda: begun.append(0.02)) == pytest.approx(0.02, rel=0.2)
