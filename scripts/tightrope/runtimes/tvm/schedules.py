"""Schedules of TVM loops on a CPU: one rule per kind of function in a classifier."""

import math
from typing import Any, NamedTuple

from tvm import s_tir, tirx
from tvm.s_tir import dlight
from tvm.target import Target
from tvm.target.codegen import target_has_features

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
