"""Times of the operators of an ONNX Runtime session, by its profiler."""

from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import onnxruntime
from msgspec.structs import replace

from tightrope.records.profile import OperatorTime
from tightrope.runtimes.onnxruntime.session import (
    CPU,
    KERNEL,
    Options,
    Providers,
    kernel_events,
    session_options,
)
from tightrope.runtimes.onnxruntime.session import TYPES as FLOATS
from tightrope.runtimes.operator_times import Calls, Tensor, operator_time, per_call

TYPES = {**FLOATS, "int32": "int32", "int64": "int64", "bool": "bool"}
# seconds of a microsecond
MICRO = 1e-6


def operator_times(
    path: Path, threads: int, options: Options, calls: Calls, providers: Providers = ((CPU, {}),)
) -> list[list[OperatorTime]]:
    """Return the time of each operator per call, the longest first, for each of `calls`."""
    found = events_of(path, session_options(threads, options), calls, providers)
    return [
        per_call(times_of(events), count) for events, (_, count) in zip(found, calls, strict=True)
    ]


def events_of(
    path: Path,
    options: onnxruntime.SessionOptions,
    calls: Calls,
    providers: Providers = ((CPU, {}),),
) -> list[list[dict[str, Any]]]:
    """Return the events of ONNX Runtime's profiler for each of `calls`: one per operator and call.

    The session is opened once, with its profiler. One more call before those of `calls`, with the
    same inputs, warms up.
    """
    every = (inputs for inputs, count in calls for _ in range(count + 1))
    kernels = kernel_events(path, options, providers, every)
    size = len(kernels) // sum(count + 1 for _, count in calls)
    ends = accumulate(size * (count + 1) for _, count in calls)
    return [kernels[end - size * count : end] for end, (_, count) in zip(ends, calls, strict=True)]


def times_of(events: Iterable[dict[str, Any]]) -> Iterator[OperatorTime]:
    """Return the time of each event of calls of the same inputs.

    Their operators are read once: that takes longer than many an operator.
    """
    known: dict[str, OperatorTime] = {}
    for event in events:
        name, facts = event["name"], event["args"]
        if name not in known:
            ends = (tensors(facts[f"{end}_type_shape"]) for end in ("input", "output"))
            known[name] = operator_time(name.removesuffix(KERNEL), facts["op_name"], 0.0, *ends)
        yield replace(known[name], seconds=MICRO * event["dur"])


def tensors(operands: list[dict[str, list[int]]]) -> list[Tensor]:
    """Return types and shapes of the operands of an event."""
    return [
        Tensor(tuple(shape), TYPES.get(kind, kind))
        for operand in operands
        for kind, shape in operand.items()
    ]
