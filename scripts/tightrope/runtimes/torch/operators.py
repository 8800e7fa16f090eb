"""Which operators PyTorch runs, and in which precision: its profiler's word, and oneDNN's."""

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tightrope.runtimes.executed import Executed, counted, is_product

DTYPES = {
    "float": "fp32",
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "signed char": "int8",
    "c10::Float8_e4m3fn": "fp8",
}
TENSORS = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
# a matrix product for which Inductor chose a kernel of its own
TEMPLATE = "triton_tem"
ONEDNN = {"f32": "fp32", "bf16": "bf16", "f16": "fp16", "s8": "int8", "u8": "int8"}
PRIMITIVE = re.compile(r"onednn_verbose,.*?exec,cpu,(\w+),.*?\bsrc(?:_\w+)?:(\w+):.*?\bwei:(\w+):")


def profiled(run: Callable[[], Any]) -> Executed:
    """Matrix products of one call of `run`, by PyTorch's profiler.

    A product in which another one is nested (linear calls addmm) is counted once, as the inner.
    """
    run()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as profile:
        run()
    events = [
        event for event in profile.profiler.kineto_results.events() if is_product_event(event)
    ]
    ends = [(event.start_ns(), event.start_ns() + event.duration_ns()) for event in events]
    innermost = [
        event
        for event, (start, end) in zip(events, ends, strict=True)
        if not any(start <= s and e <= end and (s, e) != (start, end) for s, e in ends)
    ]
    return counted((short(event.name()), precision_of(event)) for event in innermost)


def is_product_event(event: Any) -> bool:
    """Whether an event of the profiler is a product of floating-point or integer matrices."""
    words = event.name().replace("mm", "matmul")
    known = "::" in words or words.startswith(TEMPLATE)
    return known and is_product(words) and any(d in DTYPES for d in event.dtypes())


def short(name: str) -> str:
    """`_scaled_dot_product_attention` of `aten::_scaled_dot_product_attention`."""
    return name.rpartition("::")[2]


def precision_of(event: Any) -> str:
    """int8 for the operators of quantized modules, else the type of the first tensor."""
    if event.name().startswith("quantized::"):
        return "int8"
    return next(DTYPES[name] for name in event.dtypes() if name in DTYPES)


def in_graph(program: torch.export.ExportedProgram) -> Executed:
    """Matrix products in the graph of `program`, by the type of their first operand.

    For packages compiled for a GPU, which call kernels past PyTorch's dispatcher: what Inductor
    makes of a graph keeps the types that are in it.
    """
    found = []
    for node in program.graph.nodes:
        name = getattr(node.target, "__name__", "").partition(".")[0]
        if node.op == "call_function" and is_product(name.replace("mm", "matmul")):
            found.append((name, TENSORS[node.args[0].meta["val"].dtype]))
    return counted(found)


def logged_by_onednn(run: Callable[[], Any]) -> Executed:
    """Matrix products that oneDNN computes in one call of `run`, by its own log.

    For compiled packages, which call its kernels past PyTorch's dispatcher: their source and
    weight types are those of the kernel that was chosen. What runs outside oneDNN (attention in
    PyTorch's own kernel) is not in it.
    """
    run()
    verbose = torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON)
    with captured_output() as lines, verbose:
        run()
    found = [match.groups() for line in lines if (match := PRIMITIVE.search(line))]
    return counted(
        (kind, ONEDNN.get(weights, weights))
        for kind, _, weights in found
        if is_product(kind) or kind == "inner_product"
    )


@contextmanager
def captured_output() -> Iterator[list[str]]:
    """The lines that the process and its C++ libraries write to standard output meanwhile."""
    lines: list[str] = []
    sys.stdout.flush()
    before = os.dup(1)
    with tempfile.TemporaryFile(mode="w+") as file:
        os.dup2(file.fileno(), 1)
        try:
            yield lines
        finally:
            sys.stdout.flush()
            flush_c_output()
            os.dup2(before, 1)
            os.close(before)
            file.seek(0)
            lines += file.read().splitlines()


def flush_c_output() -> None:
    """Write what C's buffered output still holds."""
    import ctypes

    ctypes.CDLL(None).fflush(None)
