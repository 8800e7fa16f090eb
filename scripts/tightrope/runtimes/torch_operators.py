"""The operators that PyTorch runs, with their precision and their times, by its profiler."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tightrope.inputs.arrays import Arrays
from tightrope.records.profile import OperatorTime
from tightrope.runtimes.executed import Executed, counted, is_product
from tightrope.runtimes.operator_times import (
    DISPATCH,
    ELEMENTWISE,
    Calls,
    Tensor,
    group_of,
    operator_time,
    per_call,
)

DTYPES = {
    "float": "fp32",
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "signed char": "int8",
    "c10::Float8_e4m3fn": "fp8",
}
# name prefix of a matrix product in one of Inductor's template kernels
TEMPLATE = "triton_tem"
TYPES = {**DTYPES, "unsigned char": "int8", "int": "int32", "long int": "int64", "bool": "bool"}
# their first operand is added to the product of the others
WITH_BIAS = ("addmm", "baddbmm")
# groups of operators that may call one of their kind on less than their operands
OVER_ELEMENTS = (ELEMENTWISE, "moves")
# seconds of a microsecond
MICRO = 1e-6


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


def operator_times(
    path: Path, run: Callable[[Arrays], Any], calls: Calls, **settings: Any
) -> list[list[OperatorTime]]:
    """Return the times of the operators that PyTorch runs in the process, see `times_of_calls`."""
    return [times_of_calls(partial(run, inputs), count) for inputs, count in calls]


def times_of_calls(run: Callable[[], Any], calls: int) -> list[OperatorTime]:
    """Return the time of each kind and shape of operator per call of `run`, the longest first.

    An operator's time is without that of the operators that it calls. PyTorch's profiler adds about
    a microsecond to each operator. `run` was called before; TorchScript specializes in three calls.
    """
    return per_call((time_of(event) for event in profile_of(run, calls).events()), calls)


def time_of(event: Any) -> OperatorTime:
    """Return the time of one event; its result is not recorded, so it has the first operand's size.

    A matrix product's result has the rows of the first operand and the columns of the last.
    """
    name = short(event.name)
    inputs = [
        Tensor(tuple(shape), TYPES[kind])
        for shape, kind in zip(event.input_shapes, event.input_dtypes, strict=False)
        if kind in TYPES
    ]
    shapes = " ".join("x".join(map(str, one.shape)) for one in inputs[:3])
    group = group_of(name)
    if passes_on(event, group):
        inputs, group = [], DISPATCH
    if name in WITH_BIAS:
        inputs = inputs[1:]
    outputs = [result_of(name, inputs)] if inputs else []
    seconds = MICRO * event.self_cpu_time_total
    return operator_time(f"{name} {shapes}".strip(), name, seconds, inputs, outputs, group=group)


def passes_on(event: Any, group: str) -> bool:
    """Return whether an operator only hands its operands to one of its kind (linear to addmm).

    One over elements may also call one on less, say to convert its number, and work itself: there
    the longer one works. Times say nothing of the others, as a busy machine stops any of them.
    """
    alike = [one for one in event.cpu_children if group_of(short(one.name)) == group]
    if group not in OVER_ELEMENTS:
        return bool(alike)
    return any(one.cpu_time_total >= event.self_cpu_time_total for one in alike)


def result_of(name: str, inputs: list[Tensor]) -> Tensor:
    """Return shape and type of the result of an operator with these operands."""
    matrices = [one for one in inputs if len(one.shape) > 1]
    if "mm" in name and len(matrices) > 1:
        first, second = matrices[-2:]
        return Tensor((*first.shape[:-1], second.shape[-1]), first.type)
    return inputs[0]
