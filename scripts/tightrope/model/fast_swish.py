"""FastSwish: shaped like HardSwish, and its gradient never dies; docs/activations.md proves it.

    f(x) = max(x, 0) - q (3 - q)^2 / (18 + 27 max(-2 - x, 0)),  q = |min(max(x, -2), 3)|

It comes as a formula for plain autograd, and as the operator `tightrope::fast_swish`, whose
backward is its own and keeps the input alone. torch.compile, torch.export and the exporter to ONNX
take the operator apart into the standard ones of the formula; on a GPU, eager, a Triton kernel
computes it.
"""

from typing import Any

import torch

HALF = (torch.float16, torch.bfloat16)


def fast_swish_formula(x: torch.Tensor) -> torch.Tensor:
    """FastSwish of every element of `x` in standard operators; shape and type stay.

    Computed in fp32 where `x` is fp16 or bf16. Plain autograd keeps nine tensors for it.
    """
    wide = x.float() if x.dtype in HALF else x
    # names are given anew, so that without autograd few tensors are there at once
    dip = wide.clamp(-2, 3).abs()
    rest = 3 - dip
    dip = dip * rest
    dip = dip * rest
    del rest
    dip = dip / denominator(wide)
    return (wide.relu() - dip).to(x.dtype)


def fast_swish_slope(x: torch.Tensor) -> torch.Tensor:
    """The derivative of FastSwish at every element of `x`, in fp32 where that is fp16 or bf16."""
    wide = x.float() if x.dtype in HALF else x
    left = wide.clamp(-2, 3).abs()
    left = (3 - left) * (1 - left) / 6
    shrink = 18 / denominator(wide)
    left = left * shrink
    left = left * shrink  # one after the other: squared, the denominator would overflow
    del shrink
    return torch.where(wide > 0, 1 - left, left)


def denominator(x: torch.Tensor) -> torch.Tensor:
    """18 + 27 max(-2 - x, 0) in one operator less."""
    return (-27 * x - 36).clamp(min=18)


def fast_swish_backward_formula(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The gradient of the input `x` by that of the output, in the type of `x`."""
    return (gradient * fast_swish_slope(x)).to(x.dtype)


class FastSwishFunction(torch.autograd.Function):
    """FastSwish that keeps its input for the backward, and nothing else."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        """FastSwish of `x` by the kernel of its device."""
        context.save_for_backward(x)
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.tightrope.fast_swish(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient of `x`; it cannot be differentiated again."""
        (x,) = context.saved_tensors
        return torch.ops.tightrope.fast_swish_backward(gradient, x)


def on_gpu(x: torch.Tensor) -> torch.Tensor:
    """FastSwish by the Triton kernel."""
    from tightrope.model.fast_swish_kernels import launch_forward

    return launch_forward(x)


def backward_on_gpu(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The gradient of the input `x` by the Triton kernel."""
    from tightrope.model.fast_swish_kernels import launch_backward

    return launch_backward(gradient, x)


# The composite implementation is the formula for every device without a kernel of its own, and
# what PyTorch's compilers and exporters replace the operator with.
LIBRARY = torch.library.Library("tightrope", "DEF")
LIBRARY.define("fast_swish(Tensor x) -> Tensor")
LIBRARY.define("fast_swish_backward(Tensor gradient, Tensor x) -> Tensor")
LIBRARY.impl("fast_swish", fast_swish_formula, "CompositeImplicitAutograd")
for device in ("CPU", "CUDA"):
    # of each device by name: the composite implementation goes before the key of all
    LIBRARY.impl("fast_swish", FastSwishFunction.apply, f"Autograd{device}")
LIBRARY.impl("fast_swish", on_gpu, "CUDA")
LIBRARY.impl("fast_swish_backward", fast_swish_backward_formula, "CompositeImplicitAutograd")
LIBRARY.impl("fast_swish_backward", backward_on_gpu, "CUDA")


def fast_swish(x: torch.Tensor) -> torch.Tensor:
    """FastSwish of every element of `x`, floating-point; shape and type stay.

    TorchScript's tracer gets the formula: what it writes must load without this project. So does
    torch.compile on a GPU, which fuses it with its neighbours; an operator that has a kernel there
    it would only call.
    """
    if torch.jit.is_tracing() or (x.is_cuda and torch.compiler.is_compiling()):
        return fast_swish_formula(x)
    return torch.ops.tightrope.fast_swish(x)


class FastSwish(torch.nn.Module):
    """FastSwish as a layer without weights."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """FastSwish of every element of `x`."""
        return fast_swish(x)
