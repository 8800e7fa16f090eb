"""Quantize and dequantize tensors during training, with gradients through the rounding.

The formulas are those by which `tightrope.int8` quantizes an ONNX file.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch

from tightrope.onnx.edit import SMALLEST_SCALE

# AdamW moves a parameter by about the learning rate per step; ranges move faster than weights and
# in proportion to their size (Jain et al. 2020, "Trained Quantization Thresholds", section 5.2)
RANGE_RATE = 100.0
Rounding = Callable[[torch.Tensor], torch.Tensor]


class Grid(NamedTuple):
    """Values that a scheme can hold, in multiples of a scale.

    `activations` is the largest multiple, the smallest is its negative, or 0 where they are not
    `symmetric`. `weights` is that of the weights, which are symmetric. `float8` is E4M3. Where
    activations are `centered`, 0 is the middle of their range, so that a single factor is learnt.
    """

    activations: float
    weights: float
    symmetric: bool = False
    float8: bool = False
    centered: bool = False

    @property
    def rounding(self) -> Rounding:
        """Return what rounds to a value of the type."""
        return to_float8 if self.float8 else torch.round


# by the names in `tightrope.int8.schemes`
GRIDS = {
    "u8s8": Grid(255, 127),
    "u8s7": Grid(255, 64),
    "s8s8": Grid(127, 127, symmetric=True),
    "e4m3": Grid(448, 448, symmetric=True, float8=True),
}
# of files that round outputs too, which are those of ONNX Runtime: u8 around 128 is its symmetric
GRIDS_WITH_OUTPUTS = {
    "u8s8": GRIDS["u8s8"],
    "u8s7": GRIDS["u8s7"],
    "s8s8": Grid(255, 127, centered=True),
}


class InputQuantizer(torch.nn.Module):
    """Fake-quantizes an activation with one learnt range for the whole tensor.

    A range starts as calibrated and is multiplied by a learnt factor, of each end where the scheme
    is not symmetric. The gradient is that of Learned Step Size Quantization (Esser et al. 2020,
    equations 2 and 3, and section 2.2 for its size).
    """

    def __init__(self, grid: Grid, low: float, high: float) -> None:
        """Start from the calibrated range [low, high], extended to include 0."""
        super().__init__()
        low, high = min(low, 0.0), max(high, 0.0)
        one_factor = grid.symmetric or grid.centered
        if one_factor:
            low, high = -max(-low, high), max(-low, high)
        self.grid = grid
        self.calibrated = torch.nn.Buffer(torch.tensor([low, high]))
        self.logarithms = torch.nn.Parameter(torch.zeros(1 if one_factor else 2))

    def range(self, gradient: float = RANGE_RATE) -> torch.Tensor:
        """Return [low, high], float32; `gradient` is that of the logarithms of both."""
        moved = self.logarithms * gradient
        return self.calibrated * (moved + (self.logarithms * RANGE_RATE - moved).detach()).exp()

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the dequantized values, float32 of the same shape."""
        low, high = self.range(1 / math.sqrt(values.numel() * self.grid.activations))
        if self.grid.symmetric:
            scale, zero = in_float16(high / self.grid.activations), torch.zeros_like(high)
            lowest = -self.grid.activations
        else:
            scale = ((high - low) / self.grid.activations).clamp_min(SMALLEST_SCALE)
            zero, lowest = rounded(-low / scale, torch.round), 0.0
        steps = values.float() / scale
        held = steps.clamp(lowest - zero, self.grid.activations - zero)
        return rounded(held, self.grid.rounding) * scale


class WeightQuantizer(torch.nn.Module):
    """Fake-quantizes weights by their largest absolute value per output channel.

    E4M3 has one scale for the whole tensor. The gradient of the weights is that of the result.
    """

    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self.grid = grid

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """Return the dequantized weight [outputs, ...]."""
        exact = weight.detach()
        axes = range(exact.ndim) if self.grid.float8 else range(1, exact.ndim)
        scale = exact.abs().amax(dim=tuple(axes), keepdim=True) / self.grid.weights
        scale = in_float16(scale) if self.grid.symmetric else scale.clamp_min(SMALLEST_SCALE)
        held = (exact / scale).clamp(-self.grid.weights, self.grid.weights)
        return weight + (self.grid.rounding(held) * scale - exact)


def rounded(values: torch.Tensor, rounding: Rounding) -> torch.Tensor:
    """Return the rounded values, with the gradient of the exact ones (straight-through)."""
    return values + (rounding(values) - values).detach()


def to_float8(values: torch.Tensor) -> torch.Tensor:
    """Return the nearest values of E4M3, float32; they are at most 448."""
    return values.to(torch.float8_e4m3fn).float()


def in_float16(scale: torch.Tensor) -> torch.Tensor:
    """Return a scale that is exact in float16, as TensorRT's files have it."""
    scale = scale.clamp_min(SMALLEST_SCALE)
    return scale + (scale.half().float() - scale).detach()
