"""The peaks of a machine: matrix products per type, copies of memory, an operator on one number."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.failures import read_json_or_raise
from tightrope.machine.cores import let_threads_spin, pinned_processors
from tightrope.machine.host import describe_host
from tightrope.records.profile import Peaks

SCHEMA = 1
# sides of the square matrices, on a CPU and on a GPU
SIDES = {"cpu": 2048, "cuda": 8192}
# larger than any cache
COPIED_BYTES = 256 * 2**20
ROUNDS, SECONDS = 5, 0.1
TYPES = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
# compute capability from which a GPU has products in fp8
FP8_SINCE = (8, 9)


def measure_peaks(target: Path | str, *, device: str, threads: int) -> None:
    """Write, in a child, the peaks of this machine, on the processors of an engine."""
    os.sched_setaffinity(0, pinned_processors(threads))
    peaks = to_builtins(peaks_of(device, threads))
    write_artifact(target, {"schema": SCHEMA, "host": describe_host(), "peaks": peaks})


class Measured(Struct):
    """What `measure_peaks` writes, as far as it is read."""

    peaks: Peaks


def read_peaks(path: Path | str) -> Peaks:
    """Return what `peaks_of` returned; raise WorkFailed with its reason where it failed."""
    found: Measured = read_json_or_raise(path, Measured)
    return found.peaks


def peaks_of(device: str, threads: int) -> Peaks:
    """Return what this machine reaches at best; each is the best of `ROUNDS` means."""
    let_threads_spin()
    import torch

    torch.set_num_threads(threads)
    side = SIDES[device]
    with torch.inference_mode():
        rates = {name: operations_per_s(name, device, side) for name in types_on(device)}
        source = torch.ones(COPIED_BYTES // 4, device=device)
        target = torch.empty_like(source)
        copy_s = seconds_of(partial(target.copy_, source))
        number = torch.zeros(1, device=device)
        return Peaks(
            device=device,
            threads=threads,
            operations_per_s=rates,
            copy_bytes_per_s=2 * COPIED_BYTES / copy_s,
            smallest_operator_s=seconds_of(partial(number.add_, 1)),
        )


def types_on(device: str) -> tuple[str, ...]:
    """Return the types whose products are timed: fp16 is emulated on most CPUs, bf16 on some."""
    import torch

    if device == "cuda":
        has_fp8 = torch.cuda.get_device_capability() >= FP8_SINCE
        return ("fp32", "tf32", "bf16", "fp16", "int8", *(("fp8",) if has_fp8 else ()))
    # oneDNN refuses products in bf16 without AVX-512 or AVX-NE-CONVERT
    in_bf16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return ("fp32", "bf16", "int8") if in_bf16 else ("fp32", "int8")


def operations_per_s(name: str, device: str, side: int) -> float:
    """Return the operations per second of products of two square matrices of that type."""
    import torch

    if device == "cuda":
        torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    make = product_on_gpu if device == "cuda" else product_on_cpu
    return 2 * side**3 / seconds_of(make(name, side))


def product_on_gpu(name: str, side: int) -> Callable[[], Any]:
    """Return a product on the GPU; in 8 bits its right side has columns, as cuBLASLt wants it."""
    import torch

    left, right = (torch.randn(side, side, device="cuda") for _ in range(2))
    if name == "int8":
        return partial(torch._int_mm, (20 * left).to(torch.int8), (20 * right).to(torch.int8).t())
    if name == "fp8":
        one = torch.ones((), device="cuda")
        narrow = (left.to(torch.float8_e4m3fn), right.to(torch.float8_e4m3fn).t())
        return partial(torch._scaled_mm, *narrow, one, one, out_dtype=torch.bfloat16)
    dtype = getattr(torch, TYPES[name])
    return partial(torch.mm, left.to(dtype), right.to(dtype))


def product_on_cpu(name: str, side: int) -> Callable[[], Any]:
    """Return a product on the CPU, with weights packed before."""
    import torch

    left, right = torch.randn(side, side), torch.randn(side, side)
    if name == "int8":
        left, right = (20 * left).to(torch.int8), (20 * right).to(torch.int8)
        packed = torch.ops.onednn.qlinear_prepack(right, [side, side])
        scales, points = torch.ones(side), torch.zeros(side, dtype=torch.int64)
        rest: tuple[Any, ...] = (None, 1.0, 0, torch.float32, "none", [], "")
        unsigned = left.abs().to(torch.uint8)
        linear = torch.ops.onednn.qlinear_pointwise
        return partial(linear, unsigned, 1.0, 0, packed, scales, points, *rest)
    dtype = getattr(torch, TYPES[name])
    left, right = left.to(dtype), right.to(dtype)
    packed = torch.ops.mkldnn._reorder_linear_weight(right, side)
    return partial(torch.ops.mkldnn._linear_pointwise, left, packed, None, "none", [], "")


def seconds_of(call: Callable[[], Any]) -> float:
    """Return the seconds of a call: the smallest of `ROUNDS` means over about `SECONDS`.

    A call on a GPU returns before it is done, so that their number is known beforehand.
    """
    import torch
    from torch.utils.benchmark import Timer  # it waits for the GPU, where there is one

    timer = Timer("call()", globals={"call": call}, num_threads=torch.get_num_threads())
    calls = max(1, int(SECONDS / timer.timeit(1).mean))
    return min(timer.timeit(calls).mean for _ in range(ROUNDS))
