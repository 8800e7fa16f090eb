"""FastSwish's operator on an NVIDIA GPU, where Triton kernels compute it, against the formula."""

import pytest
import torch
from tightrope.model.fast_swish import FastSwish, fast_swish, fast_swish_formula

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_the_operator_gives_values_and_gradients_of_the_formula(
    layout: torch.memory_format,
) -> None:
    x = (torch.randn(8, 16, 9, 7, device="cuda") * 4).to(memory_format=layout)
    found = []
    for function in (fast_swish, fast_swish_formula):
        given = x.clone().requires_grad_()
        y = function(given)
        y.square().sum().backward()
        found.append((y, given.grad))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
        assert ours.is_contiguous(memory_format=layout)


def test_the_layer_compiled_gives_the_same() -> None:
    x = torch.randn(1000, device="cuda") * 4
    compiled = torch.compile(FastSwish(), fullgraph=True)
    torch.testing.assert_close(compiled(x), fast_swish(x), rtol=1e-6, atol=1e-6)
