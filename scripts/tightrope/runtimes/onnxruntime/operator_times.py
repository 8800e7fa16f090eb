"""Times of the operators of an ONNX Runtime session, by its profiler."""

import json
import tempfile
from pathlib import Path
from typing import Any

import onnxruntime

from tightrope.inputs.arrays import Arrays
from tightrope.runtimes.onnxruntime.session import (
    CPU,
    Options,
    Providers,
    open_session,
    session_options,
)
from tightrope.runtimes.operator_times import OperatorTime, Tensor, operator_time, per_call

TYPES = {
    "float": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "int8": "int8",
    "uint8": "int8",
    "int32": "int32",
    "int64": "int64",
    "bool": "bool",
}
KERNEL = "_kernel_time"


def operator_times(
    path: Path,
    threads: int,
    options: Options,
    inputs: Arrays,
    calls: int,
    providers: Providers = ((CPU, {}),),
) -> list[OperatorTime]:
    """Return the time of each operator per call of `inputs`, the longest first."""
    events = events_of(path, session_options(threads, options), inputs, calls, providers)
    return per_call((time_of(one) for one in events), calls)


def events_of(
    path: Path,
    options: onnxruntime.SessionOptions,
    inputs: Arrays,
    calls: int,
    providers: Providers = ((CPU, {}),),
) -> list[dict[str, Any]]:
    """Return the events of ONNX Runtime's profiler, one for each operator and call of `inputs`.

    The session is opened anew with its profiler, called once to warm up and then `calls` times.
    """
    with tempfile.TemporaryDirectory() as folder:
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder, "profile"))
        session = open_session(path, options, providers)
        for _ in range(calls + 1):
            session.run(None, inputs)
        events = json.loads(Path(session.end_profiling()).read_text())
    kernels = [one for one in events if one["name"].endswith(KERNEL)]
    # the first call warms up
    return kernels[len(kernels) // (calls + 1) :]


def time_of(event: dict[str, Any]) -> OperatorTime:
    """Return the time of one event; ONNX Runtime counts microseconds."""
    facts = event["args"]
    return operator_time(
        event["name"].removesuffix(KERNEL),
        facts["op_name"],
        event["dur"] / 1e6,
        tensors(facts["input_type_shape"]),
        tensors(facts["output_type_shape"]),
    )


def tensors(operands: list[dict[str, list[int]]]) -> list[Tensor]:
    """Return types and shapes of the operands of an event."""
    return [
        Tensor(tuple(shape), TYPES.get(kind, kind))
        for operand in operands
        for kind, shape in operand.items()
    ]
