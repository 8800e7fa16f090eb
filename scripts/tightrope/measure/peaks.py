"""The peaks of a machine: matrix products per type, copies of memory, an operator on one number."""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

from msgspec import Meta

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.failures import read_json_or_raise
from tightrope.machine.cores import let_threads_spin, pinned_processors
from tightrope.machine.host import describe_host

SCHEMA = 1
Rate = Annotated[float, Meta(gt=0)]


class Peaks(TypedDict):
    """What a machine reaches at best, see `peaks_of`."""

    device: str
    threads: int
    operations_per_s: dict[str, Rate]
    copy_bytes_per_s: Rate
    smallest_operator_s: float


class Measured(TypedDict):
    """What `measure_peaks` writes, as far as it is read."""

    peaks: Peaks


# sides of the square matrices, on a CPU and on a GPU
SIDES = {"cpu": 2048, "cuda": 8192}
# larger than any cache
COPIED_BYTES = 256 * 2**20
ROUNDS, SECONDS = 5, 0.1
TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def measure_peaks(target: Path | str, *, device: str, threads: int) -> None:
    """Write, in a child, the peaks of this machine, on the processors of an engine."""
    os.sched_setaffinity(0, pinned_processors(threads))
    peaks = peaks_of(device, threads)
    write_artifact(target, {"schema": SCHEMA, "host": describe_host(), "peaks": peaks})


def read_peaks(path: Path | str) -> dict[str, Any]:
    """Return what `peaks_of` returned; raise WorkFailed with its reason where it failed."""
    peaks: dict[str, Any] = read_json_or_raise(path, Measured)["peaks"]
    return peaks


def peaks_of(device: str, threads: int) -> dict[str, Any]:
    """Return what this machine reaches at best, with `threads` threads.

    `operations_per_s` of a product of square matrices by type, multiplications and additions;
    `copy_bytes_per_s`, bytes read and written; `smallest_operator_s`, one that adds one number.
    Each is the best of `ROUNDS` means.
    """
    let_threads_spin()
    import torch

    torch.set_num_threads(threads)
    side = SIDES[device]
    with torch.inference_mode():
        products = {name: product(name, device, side) for name in types_on(device)}
        source = torch.ones(COPIED_BYTES // 4, device=device)
        target = torch.empty_like(source)
        number = torch.zeros(1, device=device)
        return {
            "device": device,
            "threads": threads,
            "operations_per_s": {
                name: 2 * side**3 / seconds_of(call, device) for name, call in products.items()
            },
            "copy_bytes_per_s": 2
            * COPIED_BYTES
            / seconds_of(partial(target.copy_, source), device),
            "smallest_operator_s": seconds_of(partial(number.add_, 1), device),
        }


def types_on(device: str) -> tuple[str, ...]:
    """Return the types whose products are timed: fp16 is emulated on most CPUs, bf16 on some."""
    import torch

    if device == "cuda":
        return ("fp32", "bf16", "fp16", "int8")
    # oneDNN refuses products in bf16 without AVX-512 or AVX-NE-CONVERT
    in_bf16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return ("fp32", "bf16", "int8") if in_bf16 else ("fp32", "int8")


def product(name: str, device: str, side: int) -> Callable[[], Any]:
    """Return a product of two square matrices of that type, weights packed before on a CPU."""
    import torch

    left, right = torch.randn(side, side), torch.randn(side, side)
    if name == "int8":
        left, right = (20 * left).to(torch.int8), (20 * right).to(torch.int8)
        if device == "cuda":
            return partial(torch._int_mm, left.to(device), right.to(device))
        packed = torch.ops.onednn.qlinear_prepack(right, [side, side])
        scales, points = torch.ones(side), torch.zeros(side, dtype=torch.int64)
        rest: tuple[Any, ...] = (None, 1.0, 0, torch.float32, "none", [], "")
        unsigned = left.abs().to(torch.uint8)
        linear = torch.ops.onednn.qlinear_pointwise
        return partial(linear, unsigned, 1.0, 0, packed, scales, points, *rest)
    dtype = getattr(torch, TYPES[name])
    left, right = left.to(device, dtype), right.to(device, dtype)
    if device == "cuda":
        return partial(torch.mm, left, right)
    packed = torch.ops.mkldnn._reorder_linear_weight(right, side)
    return partial(torch.ops.mkldnn._linear_pointwise, left, packed, None, "none", [], "")


def seconds_of(call: Callable[[], Any], device: str) -> float:
    """Return the seconds of a call: the smallest of `ROUNDS` means over about `SECONDS`."""
    call()
    means = []
    for _ in range(ROUNDS):
        synchronize(device)
        began, calls = time.perf_counter(), 0
        while time.perf_counter() < began + SECONDS:
            call()
            calls += 1
        synchronize(device)
        means.append((time.perf_counter() - began) / calls)
    return min(means)


def synchronize(device: str) -> None:
    """Wait for the GPU, where there is one."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
