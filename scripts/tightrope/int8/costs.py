"""Time each operator with weights alone in ONNX Runtime, in float and in int8."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from tqdm import tqdm

from tightrope.artifacts.files import sha256, write_json
from tightrope.inputs.arrays import example_of
from tightrope.onnx.edit import constant_of
from tightrope.onnx.file import load_onnx, signature_of
from tightrope.onnx.session import open_model
from tightrope.onnx.weights import tensors_of, weighted_nodes, with_outputs

SCHEMA = 1
ROUNDS = 5
BLOCK_SECONDS = 0.02
INPUT, OUTPUT = "x", "y"
Shape = dict[str, int]


def measure_costs(
    onnx_path: Path | str,
    quantized: Path | str,
    target: Path | str,
    *,
    shapes: list[Shape],
    host: str,
    threads: int,
    libraries: dict[str, str | None],
) -> None:
    """Write the seconds of each operator of `quantized` at each of `shapes`.

    Each operator has a list with an entry per shape: the shape, "float_s" and "int8_s". The int8
    time includes quantizing the input. Operators of equal sizes are timed once.
    """
    model, other = load_onnx(onnx_path), load_onnx(quantized)
    costs: dict[str, list[dict[str, Any]]] = {}
    timed: dict[Any, dict[str, float]] = {}
    for shape, pairs in sized(model, other, shapes, threads):
        for node, twin, size in tqdm(pairs, desc="costs", unit="operator"):
            attributes = tuple(sorted(one.SerializeToString() for one in node.attribute))
            weights = constant_of(model, node.input[1]).shape
            key = (node.op_type, attributes, len(node.input), size, weights)
            if key not in timed:
                timed[key] = timed_pair(model, node, other, twin, size, threads=threads)
            costs.setdefault(node.name, []).append({**shape, **timed[key]})
    write_json(
        target,
        {
            "schema": SCHEMA,
            "host": host,
            "threads": threads,
            "libraries": libraries,
            "model_sha256": sha256(onnx_path),
            "operators": costs,
        },
    )


Pairs = list[tuple[onnx.NodeProto, onnx.NodeProto, tuple[int, ...]]]


def sized(
    model: onnx.ModelProto, quantized: onnx.ModelProto, shapes: list[Shape], threads: int
) -> Iterator[tuple[Shape, Pairs]]:
    """Yield per shape the operators, their quantized twins and the shapes of their inputs."""
    twins = {node.name: node for node in quantized.graph.node}
    producers = {name: node.op_type for node in quantized.graph.node for name in node.output}
    nodes = [
        node
        for node in weighted_nodes(model)
        if producers.get(twins[node.name].input[1]) == "DequantizeLinear"
    ]
    tensors = list(dict.fromkeys(node.input[0] for node in nodes))
    session = open_model(with_outputs(model, tensors), threads=threads)
    taken = signature_of(model)
    for shape in shapes:
        batch = example_of(taken, shape["batch"], shape.get("sequence", 1))
        values = tensors_of(session, tensors, batch)
        sizes = {name: np.shape(value) for name, value in zip(tensors, values, strict=True)}
        yield shape, [(node, twins[node.name], sizes[node.input[0]]) for node in nodes]


def timed_pair(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    quantized: onnx.ModelProto,
    twin: onnx.NodeProto,
    size: tuple[int, ...],
    *,
    threads: int,
) -> dict[str, float]:
    """Return seconds of an operator in float and in int8, timed in turns on input shape `size`."""
    sessions = {
        "float_s": open_model(alone(model, node), threads=threads),
        "int8_s": open_model(alone(quantized, twin), threads=threads),
    }
    inputs = {INPUT: np.random.default_rng(0).standard_normal(size).astype(np.float32)}
    found: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(ROUNDS):
        for name, session in sessions.items():
            session.run(None, inputs)
            found[name].append(seconds_per_call(session, inputs))
    return {name: statistics.median(values) for name, values in found.items()}


def seconds_per_call(session: Any, inputs: dict[str, np.ndarray]) -> float:
    """Return the mean seconds per call over one block of calls."""
    began, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - began < BLOCK_SECONDS:
        session.run(None, inputs)
        calls += 1
    return (time.perf_counter() - began) / calls


def alone(model: onnx.ModelProto, node: onnx.NodeProto) -> onnx.ModelProto:
    """Return a model with only that operator and the Q/DQ before it, if any."""
    producers = {name: one for one in model.graph.node for name in one.output}
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes, waiting, used = [node], list(node.input), set(node.input)
    start = node.input[0]
    while waiting:
        producer = producers.get(waiting.pop())
        if producer is not None and producer.op_type in ("QuantizeLinear", "DequantizeLinear"):
            nodes.insert(0, producer)
            waiting += producer.input
            used |= set(producer.input)
            if producer.op_type == "QuantizeLinear":
                start = producer.input[0]
    graph = helper.make_graph(
        [renamed(one, {start: INPUT, node.output[0]: OUTPUT}) for one in nodes],
        "operator",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, None)],
        [constants[name] for name in sorted(used & set(constants))],
    )
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


def renamed(node: onnx.NodeProto, names: dict[str, str]) -> onnx.NodeProto:
    """Return a copy of the operator with renamed tensors."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    return copy
