"""Tune the tiles of matrix products on this machine: measure, record and reuse them.

MetaSchedule would be the standard way. With TVM 0.27.0.post1 and its FFI 0.1.15.post2 it crashes
the process: `tvm.ir.save_json(tvm.ir.PrimType("int32"))` is a segmentation fault, and its database,
its builder processes and two of its mutators save loops that way.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Iterable
from itertools import chain, islice
from pathlib import Path
from typing import Any, Required, TypedDict

import numpy as np
import tvm
from tvm import te
from tvm.target import Target

from tightrope.artifacts.content import read_artifact, write_artifact
from tightrope.errors import ArtifactError
from tightrope.runtimes.tvm.schedules import tiled
from tightrope.runtimes.tvm.tiles import Product, Tiles, lanes, tilings

# candidates per product, the most promising first
CANDIDATES = 48
LAPS = 6
# most bytes of right factors and most operations per lap
LAP_BYTES = 64 << 20
LAP = 2_000_000_000


class Tuned(TypedDict, total=False):
    """How many candidates of a product were tried, and the tiles and seconds of the best."""

    tried: Required[int]
    tiles: list[int | bool]
    seconds: float


def tuned(
    calls: Iterable[list[Product]], host: Target, *, seconds: float, work: Path
) -> tuple[dict[Product, Tiles], dict[str, Any]]:
    """Return the best known tiles of each product, and a summary of the tuning.

    Candidates are tried in turns, the costliest product first, for the given number of seconds.
    Records in `work` are per TVM version, target and threads; the next build continues from them.
    """
    file = work / f"{key(host)}.json"
    records = read_records(file)
    weights = Counter(chain.from_iterable(calls))
    wanted = sorted(weights, key=lambda product: -product.operations * weights[product])
    start = time.perf_counter()
    for turn in range(CANDIDATES):
        for product in wanted:
            if time.perf_counter() - start >= seconds:
                break
            try_next(records.setdefault(str(product), {"tried": 0}), turn, product, host)
            write_artifact(file, records)
    spent = time.perf_counter() - start
    known = {product: records.get(str(product), {}) for product in wanted}
    found = {product: Tiles(*r["tiles"]) for product, r in known.items() if "tiles" in r}
    tried = sum(record.get("tried", 0) for record in known.values())
    return found, {"seconds": round(spent, 1), "products": len(wanted), "candidates": tried}


def read_records(file: Path) -> dict[str, Any]:
    """Return the records of earlier builds, empty where the file is missing or broken."""
    try:
        return read_artifact(file, dict[str, Tuned]) if file.is_file() else {}
    except ArtifactError as error:
        print(f"tuned anew: {error}")
        return {}


def key(host: Target) -> str:
    """Return the key of records: a digest of TVM version, processor features and threads."""
    return hashlib.sha256(f"{tvm.__version__} {host}".encode()).hexdigest()[:16]


def try_next(record: dict[str, Any], turn: int, product: Product, host: Target) -> None:
    """Measure the candidate of that turn, unless an earlier build did; keep it if it is best."""
    width = lanes(host, product.columns)
    tiles = next(islice(tilings(product, width), turn, None), None)
    if turn < record["tried"] or tiles is None:
        return
    taken = measured(product, tiles, width, host)
    record["tried"] = turn + 1
    if taken < record.get("seconds", float("inf")):
        record.update(tiles=list(tiles), seconds=taken)


def measured(product: Product, tiles: Tiles, width: int, host: Target) -> float:
    """Return the seconds per call of the product with those tiles, the minimum of LAPS laps.

    A lap goes through several right factors, as the layers of a network do: a single factor would
    stay in the cache.
    """
    call = tvm.compile(tiled(loops_of(product), tiles, width).mod, host).jit()["main"]
    batch, rows, columns, depth, dtype = product
    random = np.random.default_rng(0)
    left = tvm.runtime.tensor(random.standard_normal((batch, rows, depth)).astype(dtype))
    values = random.standard_normal((batch, depth, columns)).astype(dtype)
    result = tvm.runtime.empty((batch, rows, columns), dtype)
    # in a batched product both factors were just written, so they are in the cache
    count = 1 if batch > 1 else min(LAP_BYTES // values.nbytes, LAP // product.operations)
    rights = [tvm.runtime.tensor(values) for _ in range(max(1, count))]

    def lap() -> float:
        start = time.perf_counter()
        for right in rights:
            call(left, right, result)
        return (time.perf_counter() - start) / len(rights)

    return min(lap() for _ in range(LAPS))


def loops_of(product: Product) -> Any:
    """Return the product as loops without a schedule."""
    batch, rows, columns, depth, dtype = product
    left = te.placeholder((batch, rows, depth), dtype, "left")
    right = te.placeholder((batch, depth, columns), dtype, "right")
    k = te.reduce_axis((0, depth), "k")
    result = te.compute(
        (batch, rows, columns),
        lambda b, i, j: te.sum(left[b, i, k] * right[b, k, j], axis=k),
        "matmul",
    )
    return te.create_prim_func([left, right, result])
