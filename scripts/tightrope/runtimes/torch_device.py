"""Set the device of PyTorch, and fp32 or TF32 for its products."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from tightrope.inputs.arrays import Arrays
from tightrope.machine.lacks import require_gpu
from tightrope.model.module import runner
from tightrope.runtimes.cuda_program import CudaProgram, Program, queue_on_gpu
from tightrope.runtimes.executed import Executed, as_tf32
from tightrope.runtimes.program_by_shape import ByShape, Make
from tightrope.runtimes.shapes import Bucket, Buckets

VARLEN = "varlen"
# (rows, tokens) to compile at where nothing is measured
EXAMPLE = (2, 16)
ATTENTION = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


def prepare(device: str, precision: str, threads: int) -> None:
    """Set the CPU threads and, for `cuda`, whether fp32 is rounded to TF32.

    Raises WorkFailed where there is no GPU, or none that this PyTorch can use.
    """
    torch.set_num_threads(threads)
    if device == "cuda":
        require_gpu(f"PyTorch {torch.__version__}", torch.version.cuda)
        # the older of two interfaces, because Inductor reads it; by default convolutions use TF32
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = precision == "tf32"


def attention(kind: str) -> AbstractContextManager[None]:
    """Return a context in which attention runs in kernels of that kind; `auto`: PyTorch chooses.

    `varlen` is a matter of the module, see `model.unpadded`. PyTorch raises an error where these
    kernels do not support the inputs.
    """
    return nullcontext() if kind in ("auto", VARLEN) else sdpa_kernel(ATTENTION[kind])


def buckets_of(options: dict[str, Any]) -> Buckets | None:
    """Return the buckets that requests are padded to: those of CUDA graphs, None without them."""
    sizes = options.get("buckets") if options.get("graphs") else None
    return Buckets(sizes) if sizes else None


def measured(options: dict[str, Any]) -> list[Bucket]:
    """Return the shapes of programs for the measured requests; without `shapes` every bucket."""
    buckets = buckets_of(options)
    if "shapes" not in options:
        return buckets.all() if buckets else []
    shapes = [tuple(shape) for shape in options["shapes"]]
    return list(dict.fromkeys(buckets.nearest(*one) if buckets else one for one in shapes))


def largest(options: dict[str, Any]) -> Bucket:
    """Return the largest measured shape."""
    return max(measured(options), key=math.prod, default=EXAMPLE)


def tuned_for(options: dict[str, Any]) -> Bucket:
    """Return the shape to compile a program for any shape at, about the largest measured."""
    rows, *tokens = largest(options)
    rows = max(rows, EXAMPLE[0])
    # one row would be compiled as a constant, and two equal sizes as one
    return rows + (rows in tokens), *tokens


def runner_on(device: str, program: Program, options: dict[str, Any]) -> Callable[[Arrays], Any]:
    """Return `run(inputs) -> float32 logits [batch, classes]`, numpy, of a program on that device.

    On a GPU, if the options have `graphs`, there is a CUDA graph per bucket of `buckets`; else any
    shape runs.
    """
    if device == "cpu":
        return runner(program)
    kind = options.get("attention", "auto")

    def attending(**inputs: torch.Tensor) -> torch.Tensor:
        with attention(kind):
            return program(**inputs)

    def on_new_queue() -> Make:
        queue = queue_on_gpu(graphs=options.get("graphs", False))
        return lambda inputs: CudaProgram(attending, inputs, queue)

    return ByShape(on_new_queue, buckets_of(options))


def with_tf32(executed: Executed, device: str) -> Executed:
    """Return `executed` with fp32 products named tf32 where the GPU rounds to TF32.

    The profiler reports the types of tensors, which are the same for both.
    """
    return as_tf32(executed) if device == "cuda" and rounds_to_tf32() else executed


def rounds_to_tf32() -> bool:
    """Return whether an fp32 product on the GPU loses what TF32's 10-bit mantissa cannot hold."""
    size, value = 1024, 1 + 2.0**-12
    matrix = torch.full((size, size), value, device="cuda")
    product = matrix @ torch.eye(size, device="cuda")
    return bool((product != value).any())
