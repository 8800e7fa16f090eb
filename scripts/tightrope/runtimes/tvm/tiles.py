"""Tiles of a matrix product: the shapes of its loops, and which of them fit the registers."""

from typing import Any, NamedTuple

from tvm import s_tir, tirx
from tvm.target import Target
from tvm.target.codegen import target_has_features

# vectors that keep two multipliers with a latency of 4 cycles busy
BUSY = 8

# lanes -> most vectors in an output tile: AVX-512 has 32 registers, others 16, and the factors
# need some
ACCUMULATORS = {16: 24, 8: 12, 4: 12}
# 32-bit lanes of a vector
FEATURES = {"avx512f": 16, "avx2": 8}


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
    return max(n for n in range(1, widest(target) + 1) if columns % n == 0)


def widest(target: Target) -> int:
    """Return the 32-bit lanes of the widest vector: of 512, 256 or 128 bits."""
    # llvm_get_vector_width of TVM 0.27 returns 512 for processors without AVX-512 too
    return next((n for name, n in FEATURES.items() if target_has_features(name, target)), 4)


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
