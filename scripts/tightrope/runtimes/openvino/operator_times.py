"""Times of the operators of a compiled OpenVINO program, by its performance counters."""

from collections.abc import Mapping
from functools import cache, partial

import openvino

from tightrope.inputs.arrays import Arrays
from tightrope.runtimes.operator_times import (
    OperatorTime,
    Tensor,
    group_of,
    operator_time,
    per_call,
)

TYPES = {
    "f32": "fp32",
    "f16": "fp16",
    "bf16": "bf16",
    "i8": "int8",
    "u8": "int8",
    "i32": "int32",
    "i64": "int64",
    "boolean": "bool",
}
COUNTERS = {"PERF_COUNT": True}


def operator_times(
    program: openvino.CompiledModel, inputs: Arrays, calls: int
) -> list[OperatorTime]:
    """Return the time of each operator per call of `inputs`, the longest first.

    `program` was compiled with `COUNTERS`; it is called once to warm up and then `calls` times.
    """
    request = program.create_infer_request()
    operands = operands_of(program)
    # an operator is read once: that takes longer than many an operator
    known = cache(partial(operator_of, operands))
    request.infer(inputs)
    found = []
    for _ in range(calls):
        request.infer(inputs)
        for one in request.profiling_info:
            if one.status == openvino.ProfilingInfo.Status.EXECUTED:
                seconds = one.real_time.total_seconds()
                found.append(known(one.node_name, one.node_type)._replace(seconds=seconds))
    return per_call(found, calls)


Operands = Mapping[str, tuple[list[Tensor], list[Tensor], int]]


def operands_of(program: openvino.CompiledModel) -> Operands:
    """Return inputs, outputs and the number of fused Softmax operators of each operator."""
    found = {}
    for node in program.get_runtime_model().get_ops():
        facts = node.get_rt_info()
        inputs = [
            Tensor(tuple(one.get_shape()), type_of(one.get_element_type().get_type_name()))
            for one in node.inputs()
        ]
        outputs = [
            Tensor(tuple(one.get_shape()), type_of(one.get_element_type().get_type_name()))
            for one in node.outputs()
        ]
        layers = facts["originalLayersNames"].astype(str).casefold()
        found[node.get_friendly_name()] = inputs, outputs, layers.count("softmax")
    return found


def type_of(name: str) -> str:
    """Return this project's name of an element type."""
    return TYPES.get(name, name)


def operator_of(operands: Operands, name: str, kind: str) -> OperatorTime:
    """Return an operator without its time; one that a Softmax was fused into is attention."""
    inputs, outputs, softmaxes = operands.get(name, ([], [], 0))
    group = group_of(kind, products=2 if softmaxes and kind == "Subgraph" else 1)
    return operator_time(name, kind, 0.0, inputs, outputs, group=group)
