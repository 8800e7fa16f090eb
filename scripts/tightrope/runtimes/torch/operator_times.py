"""Times of the operators that PyTorch runs, by its profiler."""

from collections.abc import Callable
from typing import Any

from tightrope.records.profile import OperatorTime
from tightrope.runtimes.operator_times import (
    DISPATCH,
    ELEMENTWISE,
    Tensor,
    group_of,
    operator_time,
    per_call,
)
from tightrope.runtimes.torch.operators import DTYPES, profile_of, short

TYPES = {**DTYPES, "unsigned char": "int8", "int": "int32", "long int": "int64", "bool": "bool"}
# their first operand is added to the product of the others
WITH_BIAS = ("addmm", "baddbmm")
# groups of operators that may call one of their kind on less than their operands
OVER_ELEMENTS = (ELEMENTWISE, "moves")
# seconds of a microsecond
MICRO = 1e-6


def operator_times(run: Callable[[], Any], calls: int) -> list[OperatorTime]:
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
