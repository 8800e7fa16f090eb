"""Activation functions by name, FastSwish among them, and their replacement in transformers models.

FastSwish is HardSwish-like without a zero-gradient region; see docs/activations.md:

    f(x) = max(x, 0) - q (3 - q)^2 / (18 + 27 max(-2 - x, 0)),  q = |min(max(x, -2), 3)|

Available as a formula for plain autograd, and as the operator `tightrope::fast_swish` with a custom
backward that saves only its input. torch.compile, torch.export and the ONNX exporter decompose the
operator into the standard operators of the formula; in eager mode on a GPU, a Triton kernel
computes it.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tightrope.errors import TightropeError
from tightrope.model.config import FIELD

HALF = (torch.float16, torch.bfloat16)
# transformers' names of activations that bound a gate or a pooled vector, and of the identity
KEPT = ("linear", "sigmoid", "tanh")
FUNCTIONS = ("gelu", "hardswish", "leaky_relu", "mish", "relu", "relu6", "silu")


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
    from tightrope.model.fast_swish_kernels import forward_kernel, launch

    return launch(forward_kernel, x)


def backward_on_gpu(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Compute the gradient of the input `x` with the Triton kernel."""
    from tightrope.model.fast_swish_kernels import backward_kernel, launch

    return launch(backward_kernel, gradient, x)


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


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
    "hardswish": nn.Hardswish,
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "fast_swish": FastSwish,
}


def make_activation(name: str) -> nn.Module:
    """Return a new activation module; raise TightropeError for an unknown name."""
    if name not in ACTIVATIONS:
        raise TightropeError(f"activation {name}: unknown; there are {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]()


def replace_activations(module: nn.Module, name: str) -> int:
    """Replace every activation of `module` by activation `name`; return the number replaced.

    Replaces submodules, and plain functions that a module holds as attributes. Tanh and sigmoid
    stay, because poolers and gates use them; so do functions that a forward calls directly. Raises
    TightropeError naming the model class if it has no activation to replace.
    """
    make_activation(name)
    from transformers.activations import ACT2CLS

    # some have arguments beside their class
    classes = {
        key: entry[0] if isinstance(entry, tuple) else entry for key, entry in ACT2CLS.items()
    }
    known = {kind for key, kind in classes.items() if key not in KEPT}
    kinds = (*known, nn.GELU, FastSwish)
    named = (vars(nn.functional), vars(torch))
    functions = [names[one] for names in named for one in FUNCTIONS if one in names]
    count = 0
    for owner in list(module.modules()):
        if isinstance(owner, kinds):
            continue
        for attribute, value in [*owner._modules.items(), *vars(owner).items()]:
            if isinstance(value, kinds) or any(value is one for one in functions):
                setattr(owner, attribute, make_activation(name))
                count += 1
    if not count:
        raise TightropeError(
            f"{type(module).__name__}: has no activation that can be replaced; remove activation"
        )
    return count


def swap_activation(model: Any, name: str) -> None:
    """Replace the activations of a transformers model and record `name` in its config."""
    count = replace_activations(model, name)
    setattr(model.config, FIELD, name)
    print(f"{type(model).__name__}: {count} activations are now {name}")


def restore_activation(model: Any) -> None:
    """Replace the activations of a newly loaded model if its config.json names a replacement."""
    name = getattr(model.config, FIELD, None)
    if name is not None:
        replace_activations(model, name)
