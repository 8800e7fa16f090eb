"""A model of which each operator with weights runs in int8 or in float, as its input says."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tightrope.inputs import Arrays, batches_by_length
from tightrope.onnx_graph import load_onnx, open_model, require_one_file
from tightrope.repairs import (
    add_constant,
    constant_of,
    dequantized_weight,
    drop_unread,
    rows_of,
    smoothing_of,
)
from tightrope.weighted import weighted_nodes, with_outputs

SWITCHES = "tightrope_switches"
BATCH = 32


class SwitchedModel:
    """`source` and its quantized file in one session, for any choice of operators.

    It computes in float what the quantized file stands for: values rounded to those that int8 can
    hold, multiplied and added up in float32. `operators` are the names of what can be chosen.
    Raises TightropeError where both weights together do not fit into 2 GiB.
    """

    def __init__(self, source: Path | str, quantized: Path | str, *, threads: int) -> None:
        model, self.operators = with_switches(load_onnx(source), load_onnx(quantized))
        makers = {node.name: node.output[0] for node in model.graph.node}
        self.outputs = {name: makers[name] for name in self.operators}
        model = with_outputs(model, list(self.outputs.values()))
        require_one_file(quantized, model.ByteSize())
        self.session = open_model(model, threads=threads)
        self.logits = model.graph.output[0].name

    def run(self, batch: Arrays, in_int8: Collection[str], *tensors: str) -> list[np.ndarray]:
        """Logits float32 [batch, classes] with those operators in int8, and those `tensors`."""
        switches = np.array([name in in_int8 for name in self.operators])
        return self.session.run([self.logits, *tensors], {**batch, SWITCHES: switches})

    def answers(self, rows: list[Arrays], in_int8: Collection[str]) -> np.ndarray:
        """Logits float32 [rows, classes] of encoded samples."""
        found: dict[int, Any] = {}
        for indices, batch in batches_by_length(rows, BATCH):
            found |= zip(indices, self.run(batch, in_int8)[0], strict=True)
        return np.stack([found[index] for index in range(len(rows))])


def with_switches(
    source: onnx.ModelProto, quantized: onnx.ModelProto
) -> tuple[onnx.ModelProto, list[str]]:
    """The quantized model with an input `SWITCHES`, bool [operators], and their names in order."""
    model = onnx.ModelProto()
    model.CopyFrom(quantized)
    makers = {name: node for node in model.graph.node for name in node.output}
    floats = {node.name: constant_of(source, node.input[1]) for node in weighted_nodes(source)}
    names: list[str] = []
    nodes: list[onnx.NodeProto] = []
    # of a convolution what comes out is rounded too, and read instead of it
    outputs = rounded_outputs(model, makers)
    given: dict[str, str] = {}
    for node in model.graph.node:
        rounded = dequantized_weight(model, node) if node.name in floats else None
        if rounded is not None:
            switch = [f"{node.name}.{part}" for part in ("switch", "activation", "weight")]
            index = add_integer(model, f"{node.name}.index", len(names))
            names.append(node.name)
            original = makers[makers[node.input[0]].input[0]].input[0]
            factors = np.reshape(smoothing_of(model, original), (-1, 1))
            original = given.get(node.input[0], original)
            exact = rows_of(node, rows_of(node, floats[node.name]) / factors)
            weights = [node.input[1], add_constant(model, f"{node.name}.float", exact)]
            nodes += [
                helper.make_node("Gather", [SWITCHES, index], switch[:1], name=switch[0]),
                helper.make_node(
                    "Where", [switch[0], node.input[0], original], switch[1:2], name=switch[1]
                ),
                helper.make_node("Where", [switch[0], *weights], switch[2:], name=switch[2]),
            ]
            node.input[0], node.input[1] = switch[1:]
        elif node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
            node.input[:] = [given.get(name, name) for name in node.input]
        nodes.append(node)
        maker = outputs.get(node.output[0])
        if maker is not None and maker.name in names:
            chosen = f"{maker.name}.output"
            inputs = [f"{maker.name}.switch", node.output[0], maker.output[0]]
            nodes.append(helper.make_node("Where", inputs, [chosen], name=chosen))
            given[node.output[0]] = chosen
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    drop_unread(model)
    model.graph.input.append(
        helper.make_tensor_value_info(SWITCHES, TensorProto.BOOL, [len(names)])
    )
    return model, names


def rounded_outputs(
    model: onnx.ModelProto, makers: dict[str, onnx.NodeProto]
) -> dict[str, onnx.NodeProto]:
    """By the tensor that others read the convolution of which it is the rounded output."""
    found = {}
    for node in model.graph.node:
        quantizer = makers.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        source = makers.get(quantizer.input[0]) if quantizer is not None else None
        if source is not None and source.op_type == "Conv":
            found[node.output[0]] = source
    return found


def add_integer(model: onnx.ModelProto, name: str, value: int) -> str:
    """Put a whole number into the graph; its name."""
    model.graph.initializer.append(numpy_helper.from_array(np.array(value, np.int64), name))
    return name
