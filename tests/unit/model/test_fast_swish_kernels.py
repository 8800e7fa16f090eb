"""The Triton kernels of FastSwish, run on the CPU by Triton's interpreter."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import torch
from tightrope.model.fast_swish import fast_swish_backward_formula, fast_swish_formula
from tightrope.model.fast_swish_kernels import BLOCK, launch_backward, launch_forward

torch.manual_seed(0)
spread = torch.cat([torch.linspace(-50, 50, 3 * BLOCK + 5), torch.randn(777) * 4])
strange = torch.tensor([float("inf"), -float("inf"), float("nan"), 0.0, -2.0, 3.0, -1e18, 1e30])


def compare(x, gradient, tolerance):
    pairs = [
        (launch_forward(x), fast_swish_formula(x)),
        (launch_backward(gradient, x), fast_swish_backward_formula(gradient, x)),
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
assert launch_forward(last).is_contiguous(memory_format=torch.channels_last)
print("the kernels agree with the formula")
"""


@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None,
    reason="the kernels need Triton (envs/test.txt): pip install triton",
)
def test_the_kernels_agree_with_the_formula_in_every_type_and_layout(repository: Path) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(repository / "scripts")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("the kernels agree with the formula\n")
