"""Convolutions for TVM: channels last, as operators that its schedules recognize.

A convolution is a matrix product of its patches (im2col); a depthwise convolution is a sum over the
positions of its kernel.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

Pair = list[int]


@torch.library.custom_op("tightrope::patches", mutates_args=())
def patches(
    x: torch.Tensor, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> torch.Tensor:
    """Extract the patch under the kernel at each position of `x` [batch, height, width, channels].

    Returns [batch, rows, columns, kernel height, kernel width, channels], zeros beyond the edge.
    """
    batch, height, width, channels = x.shape
    rows, columns = sizes((height, width), kernel, stride, padding, dilation)
    seen = functional.unfold(
        x.permute(0, 3, 1, 2),
        tuple(kernel),
        dilation=tuple(dilation),
        padding=tuple(padding),
        stride=tuple(stride),
    )
    seen = seen.reshape(batch, channels, *kernel, rows, columns)
    return seen.permute(0, 4, 5, 2, 3, 1).contiguous()


@torch.library.custom_op("tightrope::depthwise", mutates_args=())
def depthwise(
    x: torch.Tensor, weight: torch.Tensor, stride: Pair, padding: Pair, dilation: Pair
) -> torch.Tensor:
    """Convolve each channel of `x` [batch, height, width, channels] with its kernel in `weight`.

    `weight` is [kernel height, kernel width, channels]; the result is [batch, rows, columns,
    channels].
    """
    kernels = weight.permute(2, 0, 1).unsqueeze(1)
    found = functional.conv2d(
        x.permute(0, 3, 1, 2), kernels, None, stride, padding, dilation, x.shape[3]
    )
    return found.permute(0, 2, 3, 1).contiguous()


@patches.register_fake
def _(x: torch.Tensor, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair) -> torch.Tensor:
    rows, columns = sizes(x.shape[1:3], kernel, stride, padding, dilation)
    return x.new_empty(x.shape[0], rows, columns, *kernel, x.shape[3])


@depthwise.register_fake
def _(
    x: torch.Tensor, weight: torch.Tensor, stride: Pair, padding: Pair, dilation: Pair
) -> torch.Tensor:
    rows, columns = sizes(x.shape[1:3], weight.shape[:2], stride, padding, dilation)
    return x.new_empty(x.shape[0], rows, columns, x.shape[3])


def sizes(size: Any, kernel: Any, stride: Pair, padding: Pair, dilation: Pair) -> tuple[int, int]:
    """Return rows and columns of a convolution's output for an image of that size."""
    rows, columns = (
        (size[axis] + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1) // stride[axis]
        + 1
        for axis in (0, 1)
    )
    return int(rows), int(columns)


class Convolution(nn.Module):
    """Convolution with the attributes of `layer`, which models such as MobileNetV2 read."""

    def __init__(self, layer: nn.Conv2d) -> None:
        super().__init__()
        for name in layer.__constants__:
            setattr(self, name, getattr(layer, name))
        self.bias = layer.bias
        self.kernel = list(layer.kernel_size)
        # stride, padding and dilation, which set the positions of the kernel
        padding = [int(edge) for edge in layer.padding]
        self.places = list(layer.stride), padding, list(layer.dilation)


class Product(Convolution):
    """Convolution over all channels, as the product of its patches and its weight."""

    def __init__(self, layer: nn.Conv2d) -> None:
        super().__init__(layer)
        weight = layer.weight.detach().permute(2, 3, 1, 0).flatten(0, 2)
        self.weight = nn.Parameter(weight.contiguous(), False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [batch, inputs, height, width] to [batch, outputs, rows, columns]."""
        x = x.permute(0, 2, 3, 1)
        rows, columns = sizes(x.shape[1:3], self.kernel, *self.places)
        if (self.kernel, *self.places) == ([1, 1], [1, 1], [0, 0], [1, 1]):
            seen = x
        else:
            seen = patches(x, self.kernel, *self.places)
        found = seen.reshape(-1, len(self.weight)) @ self.weight
        if self.bias is not None:
            found = found + self.bias
        return found.reshape(x.shape[0], rows, columns, -1).permute(0, 3, 1, 2)


class Depthwise(Convolution):
    """Depthwise convolution."""

    def __init__(self, layer: nn.Conv2d) -> None:
        super().__init__(layer)
        weight = layer.weight.detach()[:, 0].permute(1, 2, 0)
        self.weight = nn.Parameter(weight.contiguous(), False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [batch, channels, height, width] to [batch, channels, rows, columns]."""
        found = depthwise(x.permute(0, 2, 3, 1), self.weight, *self.places)
        if self.bias is not None:
            found = found + self.bias
        return found.permute(0, 3, 1, 2)


class Scale(nn.Module):
    """Batch norm with the statistics of training: a factor and a shift per channel."""

    def __init__(self, layer: nn.BatchNorm2d, mean: torch.Tensor, variance: torch.Tensor) -> None:
        super().__init__()
        mean, variance = mean.double(), variance.double()
        factor = (variance + layer.eps).rsqrt()
        if layer.weight is not None:
            factor = factor * layer.weight.detach().double()
        shift = -mean * factor
        if layer.bias is not None:
            shift = shift + layer.bias.detach().double()
        self.factor = nn.Parameter(factor.float(), False)
        self.shift = nn.Parameter(shift.float(), False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map [batch, channels, height, width] to the same shape."""
        return (x.permute(0, 2, 3, 1) * self.factor + self.shift).permute(0, 3, 1, 2)


def replacement(layer: nn.Module) -> nn.Module | None:
    """Return a channels-last module that computes the same as `layer`, None if `layer` stays."""
    if type(layer) is nn.BatchNorm2d:
        mean, variance = layer.running_mean, layer.running_var
        return Scale(layer, mean, variance) if mean is not None and variance is not None else None
    if type(layer) is not nn.Conv2d or isinstance(layer.padding, str):
        return None
    if layer.padding_mode != "zeros":
        return None
    if layer.groups == 1:
        return Product(layer)
    return Depthwise(layer) if layer.groups == layer.in_channels == layer.out_channels else None


def channels_last(module: nn.Module) -> nn.Module:
    """Replace the convolutions and batch norms of `module` by channels-last ones, for evaluation.

    Other convolutions stay: grouped, transposed, with padding given by name or not with zeros.
    """
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            other = replacement(child)
            if other is not None:
                setattr(parent, name, other)
    return module
