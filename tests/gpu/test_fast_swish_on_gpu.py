"""FastSwish's operator on an NVIDIA GPU, where Triton kernels compute it, against the formula.

Each test runs in a child: a process that has used CUDA cannot fork others that use it.
"""

import pytest
from tightrope.jobs.child import Limits, supervised

pytestmark = pytest.mark.gpu

LIMITS = Limits(memory_bytes=32e9, seconds=300)


def compare_operator(layout: str) -> None:
    import torch
    from tightrope.model.activations import fast_swish, fast_swish_formula

    memory_format = getattr(torch, layout)
    x = (torch.randn(8, 16, 9, 7, device="cuda") * 4).to(memory_format=memory_format)
    found = []
    for function in (fast_swish, fast_swish_formula):
        given = x.clone().requires_grad_()
        y = function(given)
        y.square().sum().backward()
        found.append((y, given.grad))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
        assert ours.is_contiguous(memory_format=memory_format)


def compare_compiled() -> None:
    import torch
    from tightrope.model.activations import FastSwish, fast_swish

    x = torch.randn(1000, device="cuda") * 4
    compiled = torch.compile(FastSwish(), fullgraph=True)
    torch.testing.assert_close(compiled(x), fast_swish(x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("layout", ["contiguous_format", "channels_last"])
def test_the_operator_gives_values_and_gradients_of_the_formula(layout: str) -> None:
    supervised(compare_operator, layout, limits=LIMITS)


def test_the_layer_compiled_gives_the_same() -> None:
    supervised(compare_compiled, limits=LIMITS)
