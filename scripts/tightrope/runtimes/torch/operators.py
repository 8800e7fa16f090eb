"""List the operators that PyTorch runs and their precision, by its profiler or oneDNN's log."""

import ctypes
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
# name prefix of a matrix product in one of Inductor's template kernels
TEMPLATE = "triton_tem"
ONEDNN = {"f32": "fp32", "bf16": "bf16", "f16": "fp16", "s8": "int8", "u8": "int8"}
PRIMITIVE = re.compile(r"onednn_verbose,.*?exec,cpu,(\w+),.*?\bsrc(?:_\w+)?:(\w+):.*?\bwei:(\w+):")


def profiled(run: Callable[[], Any]) -> Executed:
    """Return the matrix products of one call of `run`, by PyTorch's profiler.

    Nested products (linear calls addmm) are counted once, as the innermost.
    """
    profile = profile_of(run, 1)
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


def profile_of(run: Callable[[], Any], calls: int) -> Any:
    """Return PyTorch's profile of `calls` calls of `run`, after one more that warms up."""
    run()
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
        for _ in range(calls):
            run()
    return profile


def is_product_event(event: Any) -> bool:
    """Return whether a profiler event is a product of floating-point or integer matrices."""
    name = event.name()
    known = "::" in name or name.startswith(TEMPLATE)
    return known and is_product(name) and any(d in DTYPES for d in event.dtypes())


def short(name: str) -> str:
    """Strip the namespace: `aten::addmm` becomes `addmm`."""
    return name.rpartition("::")[2]


def precision_of(event: Any) -> str:
    """Return int8 for operators of quantized modules, else the type of the first tensor."""
    if event.name().startswith("quantized::"):
        return "int8"
    return next(DTYPES[name] for name in event.dtypes() if name in DTYPES)


def in_graph(program: torch.export.ExportedProgram) -> Executed:
    """Return the matrix products in the graph of `program`, by the type of their first operand.

    For packages compiled for a GPU, whose kernels bypass PyTorch's dispatcher: Inductor keeps the
    types of the graph.
    """
    found = []
    for node in program.graph.nodes:
        name = getattr(node.target, "__name__", "").partition(".")[0]
        if node.op == "call_function" and is_product(name):
            found.append((name, TENSORS[node.args[0].meta["val"].dtype]))
    return counted(found)


def logged_by_onednn(run: Callable[[], Any]) -> Executed:
    """Return the matrix products that oneDNN computes in one call of `run`, by oneDNN's log.

    For compiled packages, whose kernels bypass PyTorch's dispatcher: the logged source and weight
    types are those of the chosen kernel. Products outside oneDNN (attention in PyTorch's own
    kernel) are not in the log.
    """
    found = [match.groups() for line in onednn_log(run, 1) if (match := PRIMITIVE.search(line))]
    return counted(
        (kind, ONEDNN.get(weights, weights))
        for kind, _, weights in found
        if is_product(kind) or kind == "inner_product"
    )


def onednn_log(run: Callable[[], Any], calls: int) -> list[str]:
    """Return the lines of oneDNN's log of `calls` calls of `run`, after one more that warms up."""
    run()
    verbose = torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON)
    with captured_output() as lines, verbose:
        for _ in range(calls):
            run()
    return lines


@contextmanager
def captured_output() -> Iterator[list[str]]:
    """Capture the lines that the process and its C++ libraries write to standard output."""
    lines: list[str] = []
    sys.stdout.flush()
    before = os.dup(1)
    with tempfile.TemporaryFile(mode="w+") as file:
        os.dup2(file.fileno(), 1)
        try:
            yield lines
        finally:
            sys.stdout.flush()
            ctypes.CDLL(None).fflush(None)
            os.dup2(before, 1)
            os.close(before)
            file.seek(0)
            lines += file.read().splitlines()
