"""TVM loops of the operators in `convolutions`, and a schedule for the depthwise ones."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from tvm import relax, s_tir, te, tirx, topi
from tvm.s_tir import dlight
from tvm.target import Target

from tightrope.runtimes.tvm.convolutions import sizes
from tightrope.runtimes.tvm.tiles import ACCUMULATORS, lanes

# fused with nothing: a reshape before or after it is then free; fused, it would add divisions to
# the indices
ALONE = {"op_pattern": 8}
# most multiplications in an unrolled loop body of a depthwise convolution
UNROLLED = 256


def patches_in_loops(node: torch.fx.Node, importer: Any) -> relax.Var:
    """Emit the loops of `patches`."""
    x, kernel, stride, padding, dilation = importer.retrieve_args(node)

    def compute(x: te.Tensor) -> te.Tensor:
        batch, height, width, channels = x.shape
        rows, columns = sizes((height, width), kernel, stride, padding, dilation)

        def seen(image: Any, row: Any, column: Any, down: Any, right: Any, channel: Any) -> Any:
            y = row * stride[0] + down * dilation[0] - padding[0]
            z = column * stride[1] + right * dilation[1] - padding[1]
            value = x[image, y, z, channel]
            if padding == [0, 0]:
                return value
            inside = tirx.all(y >= 0, y < height, z >= 0, z < width)
            return tirx.if_then_else(inside, value, tirx.const(0, x.dtype))

        return te.compute((batch, rows, columns, *kernel, channels), seen, "patches")

    facts = {"primfunc_name_hint": "patches", "primfunc_attrs": ALONE}
    return importer.block_builder.emit_te(compute, x, **facts)


def depthwise_in_loops(node: torch.fx.Node, importer: Any) -> relax.Var:
    """Emit the loops of `depthwise`, with the image padded by a function before."""
    x, weight, stride, padding, dilation = importer.retrieve_args(node)
    builder = importer.block_builder

    def padded(x: te.Tensor) -> te.Tensor:
        return topi.nn.pad(x, [0, *padding, 0], name="padded")

    def compute(x: te.Tensor, weight: te.Tensor) -> te.Tensor:
        batch, height, width, channels = x.shape
        rows, columns = sizes((height, width), weight.shape, stride, [0, 0], dilation)
        down, right = (te.reduce_axis((0, weight.shape[axis]), "dr"[axis]) for axis in (0, 1))

        def total(image: Any, row: Any, column: Any, channel: Any) -> Any:
            y = row * stride[0] + down * dilation[0]
            z = column * stride[1] + right * dilation[1]
            product = x[image, y, z, channel] * weight[down, right, channel]
            return te.sum(product, axis=[down, right])

        return te.compute((batch, rows, columns, channels), total, "depthwise")

    if padding != [0, 0]:
        x = builder.emit_te(padded, x, primfunc_name_hint="padded", primfunc_attrs=ALONE)
    return builder.emit_te(compute, x, weight, primfunc_name_hint="depthwise")


# converters of the operators in `convolutions` for `from_exported_program`
CONVERSIONS: dict[str, Callable[[torch.fx.Node, Any], relax.Var]] = {
    "patches.default": patches_in_loops,
    "depthwise.default": depthwise_in_loops,
}


class Depthwise(dlight.base.ScheduleRule):  # type: ignore[misc]  # TVM has no types
    """Schedule rule for depthwise convolutions: sums over the kernel in register tiles."""

    def apply(self, func: Any, target: Target, _: bool) -> s_tir.Schedule | None:
        """Return the schedule, None where `func` is no depthwise convolution."""
        schedule = s_tir.Schedule(func)
        sums = schedule.get_child_blocks(schedule.get_sblock("root"))[0]
        block = schedule.get(sums)
        if not block.name_hint.startswith("depthwise"):
            return None
        extents = [int(axis.dom.extent) for axis in block.iter_vars]
        columns, channels, places = extents[2], extents[3], extents[5]
        width = lanes(target, channels)
        return in_windows(schedule, patch(columns, channels, places, width), width)


class Patch(NamedTuple):
    """Output tile of a depthwise convolution; `unroll` columns of the kernel are unrolled."""

    columns: int
    vectors: int
    unroll: int


def patch(columns: int, channels: int, places: int, width: int) -> Patch:
    """Return the tile with the fewest loads: neighbours share most of their inputs."""
    most = ACCUMULATORS.get(width, 12)
    wide = max(n for n in range(1, most + 1) if columns % n == 0)
    vectors = max(n for n in range(1, most // wide + 1) if channels % (n * width) == 0)
    return Patch(wide, vectors, places if places * wide * vectors <= UNROLLED else 1)


def in_windows(schedule: s_tir.Schedule, tile: Patch, width: int) -> s_tir.Schedule:
    """Schedule the sums over a kernel in register tiles, with the epilogue on each tile."""
    sums, *epilogue = schedule.get_child_blocks(schedule.get_sblock("root"))
    for block in epilogue[:-1]:
        schedule.compute_inline(block)
    last = epilogue[-1] if epilogue else schedule.cache_write(sums, 0, "global")
    image, row, column, channel, down, right = schedule.get_loops(sums)
    c0, c1 = schedule.split(column, [None, tile.columns])
    v0, v1, lane = schedule.split(channel, [None, tile.vectors, width])
    r0, r1 = schedule.split(right, [None, tile.unroll])
    schedule.reorder(image, row, v0, c0, down, r0, r1, c1, v1, lane)
    schedule.reverse_compute_at(last, c0)
    schedule.parallel(schedule.fuse(image, row))
    schedule.vectorize(lane)
    start = schedule.decompose_reduction(sums, down)
    *_, behind, channel = schedule.get_loops(last)
    vector, lane = schedule.split(channel, [None, width])
    schedule.vectorize(lane)
    for loop in (r1, c1, v1, behind, vector, *schedule.get_loops(start)[-3:-1]):
        schedule.unroll(loop)
    return schedule
