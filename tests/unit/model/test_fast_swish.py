"""FastSwish: its curve, its slope, what it keeps for the backward, and what compilers see of it."""

import importlib.util
import os
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from tightrope.jobs.child import Limits, supervised
from tightrope.model.activations import FastSwish, fast_swish, fast_swish_slope
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._subclasses import FakeTensorMode

JOINTS = (-2.0, 0.0, 3.0)


def exactly(x: Fraction) -> tuple[Fraction, Fraction]:
    """Value and slope by the pieces of docs/activations.md, in exact fractions."""
    if x < -2:
        return 2 / (9 * (3 * x + 4)), -6 / (9 * (3 * x + 4) ** 2)
    if x < 0:
        return x * (3 + x) ** 2 / 18, (3 + x) * (1 + x) / 6
    if x < 3:
        return x - x * (3 - x) ** 2 / 18, 1 - (3 - x) * (1 - x) / 6
    return x, Fraction(1)


def test_value_and_slope_are_those_of_the_pieces_and_nothing_jumps_where_they_meet() -> None:
    """Both pieces at each joint: a jump of value or slope would be at least that of one of them."""
    step = Fraction(1, 2**30)
    places = [Fraction(n, 64) for n in range(-640, 641)]
    places += [Fraction(joint) + side * step for joint in JOINTS for side in (-1, 1)]
    x = torch.tensor([float(place) for place in places], dtype=torch.float64)
    values, slopes = zip(*map(exactly, places), strict=True)
    ours = fast_swish(x), fast_swish_slope(x)
    for found, exact in zip(ours, (values, slopes), strict=True):
        expected = torch.tensor([float(one) for one in exact], dtype=torch.float64)
        torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-14)
    for joint in map(Fraction, JOINTS):
        below, above = exactly(joint - step), exactly(joint + step)
        assert abs(above[0] - below[0]) <= 3 * step
        assert abs(above[1] - below[1]) <= 3 * step


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_below_minus_3_it_tends_to_0_and_its_gradient_never_dies(dtype: torch.dtype) -> None:
    x = -torch.logspace(np.log10(3.001), 18, 2000).to(dtype)
    y = fast_swish(x.requires_grad_())
    y.sum().backward()
    assert (y < 0).all() and (y.diff() >= 0).all() and y[-1] > -1e-18
    assert (x.grad < 0).all()


def test_large_and_infinite_values_and_no_numbers_come_out_as_in_other_activations() -> None:
    large = torch.tensor([3.0, 1e4, 3e38])
    assert torch.equal(fast_swish(large), large)
    assert torch.equal(fast_swish_slope(large), torch.ones_like(large))
    x = torch.tensor([float("inf"), float("-inf"), float("nan")])
    for function in (fast_swish, torch.nn.functional.silu):
        assert function(x)[0] == float("inf")
        assert function(x)[2].isnan()
    assert fast_swish(x)[1] == 0
    assert fast_swish_slope(x)[:2].tolist() == [1, 0]
    assert fast_swish_slope(x)[2].isnan()


def test_its_own_backward_keeps_the_input_alone() -> None:
    x = torch.randn(1000, dtype=torch.bfloat16, requires_grad=True)
    (kept,) = fast_swish(x).grad_fn.saved_tensors
    assert kept is x


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_in_half_precision_it_is_the_rounded_result_of_fp32(dtype: torch.dtype) -> None:
    x = torch.linspace(-9, 9, 2001).to(dtype).requires_grad_()
    y = fast_swish(x)
    y.sum().backward()
    wide = x.detach().float()
    assert torch.equal(y, fast_swish(wide).to(dtype))
    assert torch.equal(x.grad, fast_swish_slope(wide).to(dtype))


def test_for_a_gpu_the_operator_has_a_shape_and_exporters_get_the_formula() -> None:
    """Tensors that only say that they are on a GPU."""
    with FakeTensorMode():
        x = torch.empty(3, 4, device="cuda", dtype=torch.bfloat16)
        y = torch.ops.tightrope.fast_swish(x)
        program = torch.export.export(FastSwish(), (x,))
    assert (y.shape, y.dtype, y.device.type) == ((3, 4), torch.bfloat16, "cuda")
    names = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert "aten.div.Tensor" in names
    assert all(name.startswith("aten.") for name in names)


def test_compiled_it_gives_and_learns_the_same_by_standard_operators() -> None:
    """Which Inductor fuses, and AOTInductor packs; TorchScript: tests/engines."""
    x, graphs = torch.randn(64, 16) * 5, []

    def kept(graph: torch.fx.GraphModule, _inputs: Any) -> Any:
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    found: list[list[torch.Tensor]] = []
    for compiled in (False, True):
        torch.manual_seed(0)
        layers = torch.nn.Linear(16, 32), FastSwish(), torch.nn.Linear(32, 4)
        module = torch.nn.Sequential(*layers).eval()
        backend = aot_autograd(fw_compiler=kept)
        run = torch.compile(module, fullgraph=True, backend=backend) if compiled else module
        y = run(x)
        y.sum().backward()
        found.append([y, *(weight.grad for weight in module.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    assert len(graphs) == 2  # forward and backward
    assert not any("tightrope" in graph.code for graph in graphs)


def compare_kernels() -> None:
    """Run in a child, for Triton reads its environment when it is imported."""
    os.environ["TRITON_INTERPRET"] = "1"
    from tightrope.model.activations import fast_swish_backward_formula, fast_swish_formula
    from tightrope.model.fast_swish_kernels import BLOCK, backward_kernel, forward_kernel, launch

    torch.manual_seed(0)
    spread = torch.cat([torch.linspace(-50, 50, 3 * BLOCK + 5), torch.randn(777) * 4])
    strange = torch.tensor([float("inf"), -float("inf"), float("nan"), 0.0, -2.0, 3.0, -1e18, 1e30])

    def compare(x, gradient, tolerance):
        pairs = [
            (launch(forward_kernel, x), fast_swish_formula(x)),
            (launch(backward_kernel, gradient, x), fast_swish_backward_formula(gradient, x)),
        ]
        for ours, formula in pairs:
            assert (ours.dtype, ours.shape) == (x.dtype, x.shape)
            torch.testing.assert_close(ours, formula, rtol=0, atol=tolerance, equal_nan=True)

    compare(spread, torch.randn_like(spread), 1e-6)
    compare(strange, torch.ones_like(strange), 1e-6)
    compare(spread.double(), torch.randn_like(spread.double()), 1e-14)
    for dtype in (torch.float16, torch.bfloat16):
        # a unit in the last place of results up to 64
        unit = 32 * torch.finfo(dtype).eps
        compare(spread.to(dtype), torch.ones_like(spread).to(dtype), unit)
    compare(torch.empty(0, 3), torch.empty(0, 3), 0)
    picture = torch.randn(2, 3, 5, 7)
    last = picture.to(memory_format=torch.channels_last)
    for x in (last, picture.transpose(1, 2), picture[:, :, ::2], picture[:, :1].expand(2, 3, 5, 7)):
        # the gradient in another order of memory than the input
        compare(x, torch.randn(x.shape), 1e-6)
        compare(x, torch.ones(1).expand(x.shape), 1e-6)
    assert launch(forward_kernel, last).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None,
    reason="the kernels need Triton (envs/test.txt): pip install triton",
)
def test_the_kernels_for_a_gpu_agree_with_the_formula_in_every_type_and_layout() -> None:
    """On the CPU by Triton's interpreter."""
    supervised(compare_kernels, limits=Limits(memory_bytes=8e9, seconds=200))
