"""Time each operator with weights alone in ONNX Runtime, in float and in int8."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.utils import Extractor

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.files import sha256
from tightrope.inputs.arrays import example_of
from tightrope.jobs.progress import ProgressBar
from tightrope.onnx.edit import (
    before_qdq,
    constant_of,
    copy_of,
    tensors_of,
    weighted_nodes,
    with_outputs,
)
from tightrope.onnx.file import load_onnx, signature_of
from tightrope.onnx.session import open_model

SCHEMA = 1
ROUNDS = 5
BLOCK_SECONDS = 0.02
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
    names = {node.name for node in weighted_nodes(model)}
    exact, rounded = (
        Operators(one, [node for node in one.graph.node if node.name in names])
        for one in (model, other)
    )
    costs: dict[str, list[dict[str, Any]]] = {}
    timed: dict[Any, dict[str, float]] = {}
    with ProgressBar("costs", len(shapes)) as bar:
        for shape, pairs in sized(model, other, shapes, threads):
            for node, twin, size in pairs:
                attributes = tuple(sorted(one.SerializeToString() for one in node.attribute))
                weights = constant_of(model, node.input[1]).shape
                key = (node.op_type, attributes, len(node.input), size, weights)
                if key not in timed:
                    pair = exact.alone(node), rounded.alone(twin)
                    timed[key] = timed_pair(*pair, size, threads=threads)
                costs.setdefault(node.name, []).append({**shape, **timed[key]})
                bar.add(1 / len(pairs))
    write_artifact(
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
    input_signature = signature_of(model)
    for shape in shapes:
        batch = example_of(input_signature, shape["batch"], shape.get("sequence", 1))
        values = tensors_of(session, tensors, batch)
        sizes = {name: np.shape(value) for name, value in zip(tensors, values, strict=True)}
        yield shape, [(node, twins[node.name], sizes[node.input[0]]) for node in nodes]


class Operators:
    """The operators of a model, each of which can be extracted to be timed alone."""

    def __init__(self, model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> None:
        self.producers = {name: one for one in model.graph.node for name in one.output}
        known = {one.name for one in (*model.graph.input, *model.graph.output)}
        ends = {name for node in nodes for name in self.ends(node)} - known
        typed = copy_of(model)
        # the inputs and outputs of an extracted model need a type; their shapes are free
        typed.graph.value_info.extend(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in sorted(ends)
        )
        self.extractor = Extractor(typed)

    def ends(self, node: onnx.NodeProto) -> tuple[str, str]:
        """Return the tensor before the operator and its Q/DQ, if any, and its output."""
        return before_qdq(node.input[0], self.producers), node.output[0]

    def alone(self, node: onnx.NodeProto) -> onnx.ModelProto:
        """Return a model of that operator and the Q/DQ before it, with one input and one output."""
        start, output = self.ends(node)
        return self.extractor.extract_model([start], [output])


def timed_pair(
    exact: onnx.ModelProto, quantized: onnx.ModelProto, size: tuple[int, ...], *, threads: int
) -> dict[str, float]:
    """Return seconds of an operator in float and in int8, timed in turns on input shape `size`."""
    sessions = {
        "float_s": open_model(exact, threads=threads),
        "int8_s": open_model(quantized, threads=threads),
    }
    values = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    found: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(ROUNDS):
        for name, session in sessions.items():
            inputs = {session.get_inputs()[0].name: values}
            session.run(None, inputs)
            # the mean over one block of calls
            began, calls = time.perf_counter(), 0
            while calls == 0 or time.perf_counter() - began < BLOCK_SECONDS:
                session.run(None, inputs)
                calls += 1
            found[name].append((time.perf_counter() - began) / calls)
    return {name: statistics.median(seconds) for name, seconds in found.items()}
