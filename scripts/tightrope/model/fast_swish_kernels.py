"""Triton kernels of FastSwish, forward and backward, with one pass over memory each.

With TRITON_INTERPRET=1 they run on the CPU, for tests.
"""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def widened(pointers, mask):
    """Load elements, in fp32 unless they are fp64."""
    x = tl.load(pointers, mask=mask, other=0.0)
    return x if x.dtype == tl.float64 else x.to(tl.float32)


@triton.jit
def denominator(x):
    """Compute 18 + 27 max(-2 - x, 0), NaN where `x` is NaN."""
    return tl.maximum(-27.0 * x - 36.0, 18.0, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def clipped(x):
    """Compute |min(max(x, -2), 3)|, NaN where `x` is NaN."""
    low = tl.maximum(x, -2.0, propagate_nan=tl.PropagateNan.ALL)
    return tl.abs(tl.minimum(low, 3.0, propagate_nan=tl.PropagateNan.ALL))


@triton.jit
def forward_kernel(x_pointer, y_pointer, count, BLOCK: tl.constexpr):
    """Compute one block of `y` = FastSwish(`x`)."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    x = widened(x_pointer + offsets, mask)
    q = clipped(x)
    positive = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)
    y = positive - q * (3.0 - q) * (3.0 - q) / denominator(x)
    tl.store(y_pointer + offsets, y.to(y_pointer.dtype.element_ty), mask=mask)


@triton.jit
def backward_kernel(gradient_pointer, x_pointer, result_pointer, count, BLOCK: tl.constexpr):
    """Compute one block of the gradient of `x` from that of the output."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    x = widened(x_pointer + offsets, mask)
    gradient = widened(gradient_pointer + offsets, mask)
    q = clipped(x)
    shrink = 18.0 / denominator(x)
    left = (3.0 - q) * (1.0 - q) / 6.0 * shrink * shrink
    result = gradient * tl.where(x > 0.0, 1.0 - left, left)
    tl.store(result_pointer + offsets, result.to(result_pointer.dtype.element_ty), mask=mask)


def laid_out_as(result: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return `x`, copied to the memory layout of `result` if its strides differ."""
    if x.stride() == result.stride():
        return x
    return torch.empty_like(result, dtype=x.dtype).copy_(x)


def launch(kernel: triton.runtime.KernelInterface, *tensors: torch.Tensor) -> torch.Tensor:
    """Return the result of a kernel over all elements of `tensors`, which are its inputs.

    It has the dtype of the last one and, if that is dense, its strides.
    """
    result = torch.empty_like(tensors[-1])
    given = [laid_out_as(result, one) for one in tensors]
    if count := result.numel():
        with torch.cuda.device_of(result):
            kernel[(triton.cdiv(count, BLOCK),)](*given, result, count, BLOCK=BLOCK)
    return result
