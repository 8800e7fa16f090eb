"""Lower a checkpoint to TVM loops, a module per bucket with shared weights, and schedule them.

There is one schedule on a CPU per kind of function in a classifier.
"""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import tvm
from tvm import relax, s_tir, tirx
from tvm.relax.frontend import detach_params
from tvm.relax.frontend.torch import from_exported_program
from tvm.s_tir import dlight
from tvm.target import Target
from tvm.target.codegen import target_has_features

from tightrope.model.module import example_inputs, logits_module
from tightrope.runtimes.shapes import Bucket, Buckets
from tightrope.signature import Signature

# vectors that keep two multipliers with a latency of 4 cycles busy
BUSY = 8

# lanes -> most vectors in an output tile: AVX-512 has 32 registers, others 16, and the factors
# need some
ACCUMULATORS = {16: 24, 8: 12, 4: 12}
# 32-bit lanes of a vector
FEATURES = {"avx512f": 16, "avx2": 8}
# a function on fewer elements ends before a second thread starts
PARALLEL_FROM = 8192


class Tiles(NamedTuple):
    """Tiling of a matrix product: the output tile that stays in registers."""

    rows: int
    vectors: int
    unroll: int


class Product(NamedTuple):
    """Matrix product [*batch, rows, depth] x [*batch, depth, columns] of one dtype."""

    rows: int
    columns: int
    depth: int
    dtype: str


def imported(
    source: Path, input_signature: Signature, buckets: Buckets
) -> tuple[dict[Bucket, tvm.IRModule], dict[str, np.ndarray]]:
    """Return a module per bucket, and the weights that all take as inputs in order of the keys."""
    classifier = transposed(logits_module(source, torch.float32, attention="eager"))
    modules: dict[Bucket, tvm.IRModule] = {}
    weights: dict[str, np.ndarray] = {}
    for bucket in buckets.all():
        example = example_inputs(input_signature, bucket[0], bucket[1])
        exported = torch.export.export(classifier, (), kwargs=example)
        module, parameters = detach_params(
            from_exported_program(
                exported, keep_params_as_input=True, unwrap_unit_return_tuple=True
            )
        )
        tensors = parameters.get("main", [])
        names = [variable.name for variable in module["main"].params[-len(tensors) :]]
        modules[bucket] = module
        weights = {
            f"{number:05}.{name}": tensor.numpy()
            for number, (name, tensor) in enumerate(zip(names, tensors, strict=True))
        }
    return modules, weights


class Linear(torch.nn.Module):
    """Linear layer whose weight is [inputs, outputs]."""

    def __init__(self, layer: torch.nn.Linear) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(layer.weight.detach().t().contiguous(), False)
        self.bias = layer.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map features [..., inputs] to [..., outputs]."""
        product = torch.matmul(x, self.weight)
        return product if self.bias is None else product + self.bias


def transposed(module: torch.nn.Module) -> torch.nn.Module:
    """Transpose the weights of the linear layers of `module` to [inputs, outputs].

    Else every call of the program would transpose them.
    """
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is torch.nn.Linear:
                setattr(parent, name, Linear(child))
    return module


def lowered(module: tvm.IRModule) -> tvm.IRModule:
    """Lower the module to fused loops, without schedules."""
    passes = [
        relax.transform.CanonicalizeBindings(),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
        relax.transform.RewriteDataflowReshape(),
        relax.transform.DeadCodeElimination(),
    ]
    return tvm.transform.Sequential(passes)(module)


def scheduled(module: tvm.IRModule) -> tvm.IRModule:
    """Schedule the loops of the module, each function by the first of the rules that fits."""
    rule = dlight.base.ScheduleRule.from_callable("rule")
    return dlight.ApplyDefaultSchedule(*map(rule, (matmul, rows, elements, others)))(module)


def products(module: tvm.IRModule) -> list[Product]:
    """Return the matrix products that a call of "main" runs."""
    functions = {name.name_hint: product_of(loops) for name, loops in module.functions_items()}
    found: list[Product] = []

    def visit(expression: Any) -> None:
        if isinstance(expression, relax.Call) and expression.op.name == "relax.call_tir":
            product = functions[expression.args[0].name_hint]
            if product:
                found.append(product)

    relax.analysis.post_order_visit(module["main"], visit)
    return found


def product_of(func: Any) -> Product | None:
    """Return the matrix product in the first block of `func`, None where there is none."""
    if not isinstance(func, tirx.PrimFunc):
        return None
    schedule = s_tir.Schedule(func)
    first = schedule.get_child_blocks(schedule.get_sblock("root"))[0]
    block = schedule.get(first)
    if not block.name_hint.startswith(("matmul", "T_matmul")):
        return None
    *_, rows, columns, depth = (int(axis.dom.extent) for axis in block.iter_vars)
    return Product(rows, columns, depth, str(block.writes[0].source.dtype))


def lanes(target: Target, columns: int) -> int:
    """Return the 32-bit lanes of a vector of `target`, fewer where they do not divide `columns`."""
    # llvm_get_vector_width of TVM 0.27 returns 512 for processors without AVX-512 too
    widest = next((n for name, n in FEATURES.items() if target_has_features(name, target)), 4)
    return max(n for n in range(1, widest + 1) if columns % n == 0)


def tiling(product: Product, width: int) -> Tiles | None:
    """Return the most promising register tile that divides the product.

    None where the columns are not a multiple of a vector. A tile of a single row only where no
    other divides: for it TVM simplifies batch indices for seconds or hours.
    """
    most = ACCUMULATORS.get(width, 12)
    divisors = [n for n in range(2, most + 1) if product.rows % n == 0]
    unroll = 4 if product.depth % 4 == 0 else 1
    found = (
        Tiles(rows, vectors, unroll)
        for rows in divisors or [1]
        for vectors in range(1, most // rows + 1)
        if width > 1 and product.columns % (vectors * width) == 0
    )
    return min(found, key=cost, default=None)


def cost(tiles: Tiles) -> float:
    """Return the estimated cost of a tile: loads per multiplication, idle multipliers."""
    size = tiles.rows * tiles.vectors
    # vectors of the right factor come from a slower cache
    loads = (tiles.rows + 2 * tiles.vectors) / size
    return round(loads + max(0, BUSY - size), 2)


def matmul(func: Any, target: Target, _: bool) -> s_tir.Schedule | None:
    """Schedule a matrix product and its fused epilogues with register tiles.

    Return None where `func` is no matrix product or no tile divides it.
    """
    sizes = product_of(func)
    if sizes is None:
        return None
    width = lanes(target, sizes.columns)
    tiles = tiling(sizes, width)
    if tiles is None:
        return None
    schedule = s_tir.Schedule(func)
    product, *epilogue = schedule.get_child_blocks(schedule.get_sblock("root"))
    for block in epilogue[:-1]:
        schedule.compute_inline(block)
    last = epilogue[-1] if epilogue else schedule.cache_write(product, 0, "global")
    *batch, i, j, k = schedule.get_loops(product)
    i0, i1 = schedule.split(i, [None, tiles.rows])
    j0, j1, lane = schedule.split(j, [None, tiles.vectors, width])
    k0, k1 = schedule.split(k, [None, tiles.unroll])
    schedule.reorder(*batch, j0, i0, k0, k1, i1, j1, lane)
    schedule.reverse_compute_at(last, i0)
    # with batch and tiles fused into one loop, TVM may simplify the indices for hours
    schedule.parallel(schedule.fuse(*(batch or (j0, i0))))
    schedule.vectorize(lane)
    start = schedule.decompose_reduction(product, k0)
    *_, row, column = schedule.get_loops(last)
    column, lane = schedule.split(column, [None, width])
    schedule.vectorize(lane)
    for loop in (k1, i1, j1, row, column, *schedule.get_loops(start)[-3:-1]):
        schedule.unroll(loop)
    return schedule


def rows(func: Any, target: Target, _: bool) -> s_tir.Schedule | None:
    """Schedule softmax, layer norm and the like: parallel rows, steps vectorized along the row.

    Return None where `func` does not work by rows.
    """
    schedule = s_tir.Schedule(func)
    infos = dlight.normalize_prim_func(schedule)
    if not infos or all(i.is_injective() for i in infos) or not infos[-1].is_injective():
        return None
    kind = "S" * (len(infos[-1].iters) - 1)
    if not kind or any(i.dom_kind() not in {kind, kind + "S", kind + "R"} for i in infos):
        return None
    # sums and maxima reduce in vectors, then across the vector
    steps = []
    partial = []
    for info in infos[:-1]:
        loop = schedule.get_loops(info.block_rv)[-1]
        width = lanes(target, extent(schedule, loop))
        if not info.is_injective() and width > 1:
            _, lane = schedule.split(loop, [None, width])
            partial.append(schedule.rfactor(lane, -1))
            steps.append(partial[-1])
        steps.append(info.block_rv)
    *outer, last = schedule.get_loops(infos[-1].block_rv)
    row = schedule.fuse(*outer)
    schedule.parallel(row)
    vectorized(schedule, last, target)
    for block in reversed(steps):
        schedule.compute_at(block, row, preserve_unit_loops=True)
    for block in partial:
        _, lane, *_, step = schedule.get_loops(block)
        schedule.reorder(step, lane)
        schedule.vectorize(lane)
        schedule.decompose_reduction(block, step)
    return schedule


def elements(func: Any, target: Target, _: bool) -> s_tir.Schedule | None:
    """Schedule elementwise functions, copies and gathers: one loop, vectorized and parallel.

    Return None where `func` reduces.
    """
    schedule = s_tir.Schedule(func)
    infos = dlight.normalize_prim_func(schedule)
    if not infos or not all(i.is_injective() for i in infos):
        return None
    # a sum of one element counts as injective, and cannot be inlined
    if any(schedule.get(info.block_rv).init is not None for info in infos):
        return None
    for info in infos[:-1]:
        schedule.compute_inline(info.block_rv)
    *outer, last = schedule.get_loops(infos[-1].block_rv)
    size = math.prod(extent(schedule, loop) for loop in (*outer, last))
    inner = vectorized(schedule, last, target)
    if size >= PARALLEL_FROM:
        schedule.parallel(schedule.fuse(*outer, *inner) if outer else inner[0])
    return schedule


def others(func: Any, target: Target, _: bool) -> s_tir.Schedule | None:
    """Schedule any other function: output loops parallel, the last vectorized, reductions inside.

    Return None where blocks are no plain loops.
    """
    schedule = s_tir.Schedule(func)
    infos = dlight.normalize_prim_func(schedule)
    if not infos or any(set(info.dom_kind()) - {"S", "R"} for info in infos):
        return None
    for info in infos:
        loops = schedule.get_loops(info.block_rv)
        kinds = info.dom_kind()
        outer = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == "S"]
        sums = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == "R"]
        if not outer:
            continue
        size = math.prod(extent(schedule, loop) for loop in loops)
        *outer, last = outer
        width = lanes(target, extent(schedule, last))
        wide, lane = schedule.split(last, [None, width])
        schedule.reorder(*outer, wide, *sums, lane)
        if width > 1:
            schedule.vectorize(lane)
        if size >= PARALLEL_FROM:
            schedule.parallel(schedule.fuse(*outer, wide))
        if sums:
            schedule.decompose_reduction(info.block_rv, sums[0])
    return schedule


def vectorized(schedule: s_tir.Schedule, loop: Any, target: Target) -> list[Any]:
    """Split `loop` and vectorize the inner part; return the outer loops."""
    width = lanes(target, extent(schedule, loop))
    if width == 1:
        return [loop]
    *outer, lane = schedule.split(loop, [None, width])
    schedule.vectorize(lane)
    return outer


def extent(schedule: s_tir.Schedule, loop: Any) -> int:
    """Return the number of iterations of the loop."""
    return int(schedule.get(loop).extent)
