"""FastSwish: HardSwish-like activation without a zero-gradient region; see docs/activations.md.

    f(x) = max(x, 0) - q (3 - q)^2 / (18 + 27 max(-2 - x, 0)),  q = |min(max(x, -2), 3)|

Available as a formula for plain autograd, and as the operator `tightrope::fast_swish` with a custom
backward that saves only its input. torch.compile, torch.export and the ONNX exporter decompose the
operator into the standard operators of the formula; in eager mode on a GPU, a Triton kernel
computes it.
"""

from typing import Any

import torch

HALF = (torch.float16, torch.bfloat16)


def fast_swish_formula(x: torch.Tensor) -> torch.Tensor:
    """Compute FastSwish elementwise with standard operators; shape and dtype stay.

    Computes in fp32 if `x` is fp16 or bf16. Plain autograd saves nine tensors for its backward.
    """
    wide = x.float() if x.dtype in HALF else x
    # reuse names, so that few tensors are alive at once without autograd
    dip = wide.clamp(-2, 3).abs()
    rest = 3 - dip
    dip = dip * rest
    dip = dip * rest
    del rest
    dip = dip / denominator(wide)
    return (wide.relu() - dip).to(x.dtype)


def fast_swish_slope(x: torch.Tensor) -> torch.Tensor:
    """Compute the derivative of FastSwish elementwise, in fp32 if `x` is fp16 or bf16."""
    wide = x.float() if x.dtype in HALF else x
    left = wide.clamp(-2, 3).abs()
    left = (3 - left) * (1 - left) / 6
    shrink = 18 / denominator(wide)
    left = left * shrink
    left = left * shrink  # multiply twice: the squared denominator would overflow
    del shrink
    return torch.where(wide > 0, 1 - left, left)


def denominator(x: torch.Tensor) -> torch.Tensor:
    """Compute 18 + 27 max(-2 - x, 0) with one operator fewer."""
    return (-27 * x - 36).clamp(min=18)


def fast_swish_backward_formula(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Compute the gradient of `x` from that of the output, in the dtype of `x`."""
    return (gradient * fast_swish_slope(x)).to(x.dtype)


class FastSwishFunction(torch.autograd.Function):
    """FastSwish that saves only its input for the backward."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        """Compute FastSwish of `x` with the kernel of its device."""
        context.save_for_backward(x)
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.tightrope.fast_swish(x)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Compute the gradient of `x`; it is not differentiable again."""
        (x,) = context.saved_tensors
        return torch.ops.tightrope.fast_swish_backward(gradient, x)


def on_gpu(x: torch.Tensor) -> torch.Tensor:
    """Compute FastSwish with the Triton kernel."""
    from tightrope.model.fast_swish_kernels import launch_forward

    return launch_forward(x)


def backward_on_gpu(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Compute the gradient of the input `x` with the Triton kernel."""
    from tightrope.model.fast_swish_kernels import launch_backward

    return launch_backward(gradient, x)


# The composite implementation is the formula. Devices without a registered kernel use it, and
# PyTorch's compilers and exporters decompose the operator into it.
LIBRARY = torch.library.Library("tightrope", "DEF")
LIBRARY.define("fast_swish(Tensor x) -> Tensor")
LIBRARY.define("fast_swish_backward(Tensor gradient, Tensor x) -> Tensor")
LIBRARY.impl("fast_swish", fast_swish_formula, "CompositeImplicitAutograd")
for device in ("CPU", "CUDA"):
    # register per device: the composite implementation has precedence over plain Autograd
    LIBRARY.impl("fast_swish", FastSwishFunction.apply, f"Autograd{device}")
LIBRARY.impl("fast_swish", on_gpu, "CUDA")
LIBRARY.impl("fast_swish_backward", fast_swish_backward_formula, "CompositeImplicitAutograd")
LIBRARY.impl("fast_swish_backward", backward_on_gpu, "CUDA")


def fast_swish(x: torch.Tensor) -> torch.Tensor:
    """Compute FastSwish elementwise on floating-point `x`; shape and dtype stay.

    TorchScript's tracer gets the formula, because a traced file must load without this project. So
    does torch.compile on a GPU, which fuses it with neighbouring operators; an operator with a CUDA
    kernel would stay a separate call.
    """
    tracing = torch.jit.is_tracing()  # type: ignore[attr-defined]  # public
    if tracing or (x.is_cuda and torch.compiler.is_compiling()):
        return fast_swish_formula(x)
    return torch.ops.tightrope.fast_swish(x)


class FastSwish(torch.nn.Module):
    """FastSwish as a layer without weights."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute FastSwish elementwise."""
        return fast_swish(x)
