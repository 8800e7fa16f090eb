"""How TVM's loops run on a CPU: one schedule for each kind of function of a classifier."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tvm import s_tir, tirx
from tvm.s_tir import dlight
from tvm.target import Target
from tvm.target.codegen import target_has_features

# vectors of a tile of the product: registers of AVX-512 are 32, others 16, and some are needed
# for the factors
ACCUMULATORS = {16: 24, 8: 12, 4: 12}
# a multiplier takes 4 cycles, two of them work at a time
BUSY = 8
# 32-bit numbers in a vector
FEATURES = {"avx512f": 16, "avx2": 8}
# a function on fewer elements is done before a second thread has begun
PARALLEL_FROM = 8192


class Tiles(NamedTuple):
    """How a matrix product is cut: the tile of the result that stays in registers."""

    rows: int = 8
    vectors: int = 2
    unroll: int = 4
    columns_first: bool = True


class Product(NamedTuple):
    """A matrix product [*batch, rows, depth] x [*batch, depth, columns] of one type."""

    batch: int
    rows: int
    columns: int
    depth: int
    dtype: str

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * self.rows * self.columns * self.depth

    def __str__(self) -> str:
        return f"{self.batch}x{self.rows}x{self.columns}x{self.depth}-{self.dtype}"


class Matmul(dlight.base.ScheduleRule):
    """Products, and what is fused behind them, in register tiles: `chosen` or by rule."""

    def __init__(self, chosen: dict[Product, Tiles]) -> None:
        self.chosen = chosen

    def apply(self, func: Any, target: Target, _: bool) -> s_tir.Schedule | None:
        """The schedule, or None where `func` is no product."""
        product = product_of(func)
        if product is None:
            return None
        width = lanes(target, product.columns)
        tiles = self.chosen.get(product) or next(tilings(product, width), None)
        return tiled(func, tiles, width) if tiles else None


class Rows(dlight.base.ScheduleRule):
    """Softmax, layer norm and the like: rows in parallel, each step vectorized along the row."""

    def apply(self, func: Any, target: Target, _: bool) -> s_tir.Schedule | None:
        """The schedule, or None where rows are not what `func` is about."""
        schedule = s_tir.Schedule(func)
        infos = dlight.normalize_prim_func(schedule)
        if not infos or all(i.is_injective() for i in infos) or not infos[-1].is_injective():
            return None
        rows = "S" * (len(infos[-1].iters) - 1)
        if not rows or any(i.dom_kind() not in {rows, rows + "S", rows + "R"} for i in infos):
            return None
        return by_rows(schedule, infos, target)


class Elements(dlight.base.ScheduleRule):
    """Elementwise functions, copies and gathers: one loop, vectorized and in parallel."""

    def apply(self, func: Any, target: Target, _: bool) -> s_tir.Schedule | None:
        """The schedule, or None where `func` reduces."""
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
        size = 1
        for loop in (*outer, last):
            size *= extent(schedule, loop)
        inner = vectorized(schedule, last, target)
        if size >= PARALLEL_FROM:
            schedule.parallel(schedule.fuse(*outer, *inner) if outer else inner[0])
        return schedule


class Others(dlight.base.ScheduleRule):
    """What is left: each block by itself, in vectors along its last axis and in parallel."""

    def apply(self, func: Any, target: Target, _: bool) -> s_tir.Schedule | None:
        """The schedule, or None where blocks are no plain loops."""
        schedule = s_tir.Schedule(func)
        infos = dlight.normalize_prim_func(schedule)
        if not infos or any(set(info.dom_kind()) - {"S", "R"} for info in infos):
            return None
        for info in infos:
            by_block(schedule, info, target)
        return schedule


def product_of(func: Any) -> Product | None:
    """The matrix product in the first block of `func`, None where there is none."""
    if not isinstance(func, tirx.PrimFunc):
        return None
    schedule = s_tir.Schedule(func)
    first = schedule.get_child_blocks(schedule.get_sblock("root"))[0]
    block = schedule.get(first)
    if not block.name_hint.startswith(("matmul", "T_matmul")):
        return None
    *batch, rows, columns, depth = (int(axis.dom.extent) for axis in block.iter_vars)
    count = 1
    for size in batch:
        count *= size
    return Product(count, rows, columns, depth, str(block.writes[0].source.dtype))


def lanes(target: Target, columns: int) -> int:
    """Numbers of 32 bits in a vector of `target`, fewer where `columns` cannot be split so."""
    return max(n for n in range(1, widest(target) + 1) if columns % n == 0)


def widest(target: Target) -> int:
    """Numbers of 32 bits in the widest vector: 512, 256 or 128 bits."""
    # llvm_get_vector_width of TVM 0.27 says 512 for processors without AVX-512 as well
    return next((n for name, n in FEATURES.items() if target_has_features(name, target)), 4)


def tilings(product: Product, width: int) -> Iterator[Tiles]:
    """Register tiles that divide the product, the most promising first.

    None where the columns are no multiple of a vector. Tiles of a single row only where no other
    divides: there TVM simplifies the indices of batches for seconds or hours.
    """
    divisors = [n for n in range(2, ACCUMULATORS.get(width, 12) + 1) if product.rows % n == 0]
    most = ACCUMULATORS.get(width, 12)
    found = [
        Tiles(rows, vectors, unroll, columns_first)
        for rows in divisors or [1]
        for vectors in range(1, most // rows + 1)
        for unroll in (4, 1)
        for columns_first in (True, False)
        if width > 1 and product.columns % (vectors * width) == 0 and product.depth % unroll == 0
    ]
    return iter(sorted(found, key=cost))


def cost(tiles: Tiles) -> tuple[float, bool, int]:
    """What a tile is expected to take: loads for each multiplication, idle multipliers."""
    size = tiles.rows * tiles.vectors
    # a vector of the right factor comes from a cache further away
    loads = (tiles.rows + 2 * tiles.vectors) / size
    return round(loads + max(0, BUSY - size), 2), not tiles.columns_first, -tiles.unroll


def tiled(func: Any, tiles: Tiles, width: int) -> s_tir.Schedule:
    """The product in register tiles, tiles in parallel, the epilogue on the tile at once."""
    schedule = s_tir.Schedule(func)
    product, *epilogue = schedule.get_child_blocks(schedule.get_sblock("root"))
    for block in epilogue[:-1]:
        schedule.compute_inline(block)
    last = epilogue[-1] if epilogue else schedule.cache_write(product, 0, "global")
    *batch, i, j, k = schedule.get_loops(product)
    i0, i1 = schedule.split(i, [None, tiles.rows])
    j0, j1, lane = schedule.split(j, [None, tiles.vectors, width])
    k0, k1 = schedule.split(k, [None, tiles.unroll])
    outer = (j0, i0) if tiles.columns_first else (i0, j0)
    schedule.reorder(*batch, *outer, k0, k1, i1, j1, lane)
    schedule.reverse_compute_at(last, outer[-1])
    # of batch and tiles in one loop, TVM may simplify the indices for hours
    schedule.parallel(schedule.fuse(*(batch or outer)))
    schedule.vectorize(lane)
    start = schedule.decompose_reduction(product, k0)
    *_, row, column = schedule.get_loops(last)
    column, lane = schedule.split(column, [None, width])
    schedule.vectorize(lane)
    for loop in (k1, i1, j1, row, column, *schedule.get_loops(start)[-3:-1]):
        schedule.unroll(loop)
    return schedule


def by_block(schedule: s_tir.Schedule, info: Any, target: Target) -> None:
    """The loops of a block: those of the result in parallel, its last in vectors, sums within."""
    loops = schedule.get_loops(info.block_rv)
    kinds = info.dom_kind()
    outer = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == "S"]
    sums = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == "R"]
    if not outer:
        return
    size = 1
    for loop in loops:
        size *= extent(schedule, loop)
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


def by_rows(schedule: s_tir.Schedule, infos: list[Any], target: Target) -> s_tir.Schedule:
    """Each row in one pass of the blocks; sums and maxima in vectors, then across the vector."""
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
    *rows, last = schedule.get_loops(infos[-1].block_rv)
    row = schedule.fuse(*rows)
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


def vectorized(schedule: s_tir.Schedule, loop: Any, target: Target) -> list[Any]:
    """Split `loop`, its inner part a vector; the loops around that."""
    width = lanes(target, extent(schedule, loop))
    if width == 1:
        return [loop]
    *outer, lane = schedule.split(loop, [None, width])
    schedule.vectorize(lane)
    return outer


def extent(schedule: s_tir.Schedule, loop: Any) -> int:
    """How often the loop runs."""
    return int(schedule.get(loop).extent)
