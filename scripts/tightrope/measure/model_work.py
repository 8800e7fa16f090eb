"""What a call of a model takes at least, whatever the engine: operations, and bytes moved.

Both follow from the simplified ONNX file, and are the coordinates of the call in the roofline.
Shapes are those of a call in ONNX Runtime without optimizations, since the file alone does not
determine them.
"""

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from tightrope.engines.onnxruntime import KERNEL, events_of, session_options, tensors
from tightrope.inputs.arrays import Arrays
from tightrope.onnx.file import load_onnx
from tightrope.records.profile import Work
from tightrope.runtimes.operator_times import Tensor, group_of, operations_of

OPTIONS = {"optimization": "basic", "arena": True, "spinning": True}
# operators that read some rows of a table
LOOKUPS = ("Gather", "Slice")
FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}


def model_works(file: Path, batches: Sequence[Arrays], threads: int) -> list[Work]:
    """Return, in a child, what a call of each batch takes in any precision."""
    model = load_onnx(file)
    options = session_options(threads, OPTIONS)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (output,) = (one.name for one in model.graph.output)
    found = []
    calls = [(batch, 1) for batch in batches]
    for batch, events in zip(batches, events_of(file, options, calls), strict=True):
        groups = operations_by_group(events)
        results = results_of(events)
        weights, others = weights_read(model, results)
        inputs = sum(array.nbytes for array in batch.values())
        logits = results[next(node.name for node in model.graph.node if output in node.output)]
        found.append(
            Work(
                operations=sum(groups.values()),
                groups=groups,
                weights=weights,
                other_bytes=inputs + others + logits.bytes,
            )
        )
    return found


def operations_by_group(events: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the operations of each group of operators that has any, most first."""
    found: dict[str, float] = {}
    for event in events:
        facts = event["args"]
        kind, group = facts["op_name"], group_of(facts["op_name"])
        operands = tensors(facts["input_type_shape"]), tensors(facts["output_type_shape"])
        found[group] = found.get(group, 0.0) + operations_of(kind, group, *operands)
    return {name: count for name, count in sorted(found.items(), key=lambda one: -one[1]) if count}


def results_of(events: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
    """Return the first result of each operator, by its name."""
    return {
        event["name"].removesuffix(KERNEL): results[0]
        for event in events
        if (results := tensors(event["args"]["output_type_shape"]))
    }


def weights_read(model: onnx.ModelProto, results: Mapping[str, Tensor]) -> tuple[int, int]:
    """Return the number of floating-point weights that a call reads, and bytes of the others."""
    read = rows_read(model, results)
    weights = others = 0
    for one in model.graph.initializer:
        size = min(prod(one.dims), read.get(one.name, prod(one.dims)))
        if one.data_type in FLOATS:
            weights += size
        else:
            others += size * onnx.helper.tensor_dtype_to_np_dtype(one.data_type).itemsize
    return weights, others


def rows_read(model: onnx.ModelProto, results: Mapping[str, Tensor]) -> dict[str, int]:
    """Return how many numbers of each tensor a call looks up, where it does nothing else."""
    found: dict[str, int] = {}
    others: set[str] = set()
    for node in model.graph.node:
        table = node.op_type in LOOKUPS and node.name in results
        others.update(node.input[1:] if table else node.input)
        if table:
            size = prod(results[node.name].shape)
            found[node.input[0]] = found.get(node.input[0], 0) + size
    return {name: size for name, size in found.items() if name not in others}
