"""A model whose operators with weights run in int8 or in float, selected by an input."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tightrope.inputs.arrays import Arrays, batches_by_length
from tightrope.int8.repairs import smoothing_of
from tightrope.jobs.progress import Tell, untold
from tightrope.onnx.edit import (
    add_constant,
    constant_of,
    copy_of,
    dequantized_weight,
    rows_of,
    weighted_nodes,
    with_outputs,
)
from tightrope.onnx.file import load_onnx, require_one_file
from tightrope.onnx.session import open_model

SWITCHES = "tightrope_switches"
BATCH = 32


class SwitchedModel:
    """Session of `source` and its quantized file for any choice of operators in int8.

    It simulates the quantized file in float: values are rounded to those that int8 represents, then
    multiplied and accumulated in float32. `operators` are the names that can be chosen. Raises
    TightropeError where both sets of weights together exceed 2 GiB.
    """

    def __init__(self, source: Path | str, quantized: Path | str, *, threads: int) -> None:
        model, self.operators = with_switches(load_onnx(source), load_onnx(quantized))
        producers = {node.name: node.output[0] for node in model.graph.node}
        self.outputs = {name: producers[name] for name in self.operators}
        model = with_outputs(model, list(self.outputs.values()))
        require_one_file(quantized, model.ByteSize())
        self.session = open_model(model, threads=threads)
        self.logits = model.graph.output[0].name

    def run(self, batch: Arrays, in_int8: Collection[str], *tensors: str) -> list[np.ndarray]:
        """Return logits float32 [batch, classes], then `tensors`, with those operators in int8."""
        switches = np.array([name in in_int8 for name in self.operators])
        return self.session.run([self.logits, *tensors], {**batch, SWITCHES: switches})

    def answers(
        self, rows: Sequence[Arrays], in_int8: Collection[str], tell: Tell = untold
    ) -> np.ndarray:
        """Return logits float32 [rows, classes] of encoded samples; `tell` gets rows per batch."""
        found: dict[int, Any] = {}
        for indices, batch in batches_by_length(rows, BATCH):
            found |= zip(indices, self.run(batch, in_int8)[0], strict=True)
            tell(len(indices))
        return np.stack([found[index] for index in range(len(rows))])


def with_switches(
    source: onnx.ModelProto, quantized: onnx.ModelProto
) -> tuple[onnx.ModelProto, list[str]]:
    """Return the quantized model with an input `SWITCHES`, bool [operators], and their names.

    Each operator is an `If` with an int8 and a float branch; only the chosen branch runs.
    """
    model = copy_of(quantized)
    producers = {name: node for node in model.graph.node for name in node.output}
    floats = {node.name: constant_of(source, node.input[1]) for node in weighted_nodes(source)}
    names: list[str] = []
    nodes: list[onnx.NodeProto] = []
    # outputs of convolutions are quantized too, and consumers read the quantized tensor
    outputs = {}
    for node in model.graph.node:
        quantizer = producers.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        source_of = producers.get(quantizer.input[0]) if quantizer is not None else None
        if source_of is not None and source_of.op_type == "Conv":
            outputs[node.output[0]] = source_of
    given: dict[str, str] = {}
    for node in model.graph.node:
        rounded = dequantized_weight(model, node) if node.name in floats else None
        if rounded is not None:
            pair = [producers[producers[node.input[0]].input[0]], producers[node.input[0]]]
            original = given.get(node.input[0], pair[0].input[0])
            factors = np.reshape(smoothing_of(model, pair[0].input[0]), (-1, 1))
            exact = rows_of(node, rows_of(node, floats[node.name]) / factors)
            quantized_branch = in_int8(model, node, pair, rounded)
            inputs = [original, add_constant(model, f"{node.name}.exact", exact)]
            float_branch = branch(f"{node.name}.float", node, [], inputs)
            nodes += switched(model, node, len(names), quantized_branch, float_branch)
            names.append(node.name)
        else:
            if node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
                node.input[:] = [given.get(name, name) for name in node.input]
            nodes.append(node)
        producer = outputs.get(node.output[0])
        if producer is not None and producer.name in names:
            # that of `node` after Q/DQ, or its own
            name = f"{producer.name}.output"
            inputs = [f"{producer.name}.switch", node.output[0], producer.output[0]]
            nodes.append(helper.make_node("Where", inputs, [name], name=name))
            given[node.output[0]] = name
    switches = helper.make_tensor_value_info(SWITCHES, TensorProto.BOOL, [len(names)])
    model.graph.input.append(switches)
    return only_read(model, nodes), names


def switched(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    place: int,
    quantized: onnx.GraphProto,
    exact: onnx.GraphProto,
) -> list[onnx.NodeProto]:
    """Return the nodes that run one of two branches in place of `node`, by switch `place`."""
    index, switch = f"{node.name}.index", f"{node.name}.switch"
    model.graph.initializer.append(numpy_helper.from_array(np.array(place, np.int64), index))
    return [
        helper.make_node("Gather", [SWITCHES, index], [switch], name=switch),
        helper.make_node(
            "If", [switch], node.output, name=node.name, then_branch=quantized, else_branch=exact
        ),
    ]


def in_int8(
    model: onnx.ModelProto, node: onnx.NodeProto, pair: list[onnx.NodeProto], weights: np.ndarray
) -> onnx.GraphProto:
    """Return the int8 branch: the operator after its Q/DQ `pair`, with dequantized weights."""
    names = [f"{node.name}.{step}" for step in ("quantized", "dequantized")]
    steps = [
        renamed(pair[0], [*pair[0].input], names[0]),
        renamed(pair[1], [names[0], *pair[1].input[1:]], names[1]),
    ]
    constant = add_constant(model, f"{node.name}.rounded", weights)
    return branch(f"{node.name}.int8", node, steps, [names[1], constant])


def branch(
    name: str, node: onnx.NodeProto, steps: list[onnx.NodeProto], inputs: list[str]
) -> onnx.GraphProto:
    """Return a graph without inputs: the nodes `steps`, then the operator on `inputs`."""
    last = renamed(node, [*inputs, *node.input[2:]], f"{name}.output")
    output = helper.make_tensor_value_info(last.output[0], TensorProto.FLOAT, None)
    return helper.make_graph([*steps, last], name, [], [output])


def renamed(node: onnx.NodeProto, inputs: list[str], output: str) -> onnx.NodeProto:
    """Return a copy of the operator with other input and output tensors."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:], copy.output[:], copy.name = inputs, [output], output
    return copy


def only_read(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    """Return `model` with the nodes of `nodes` that reach outputs and the constants they read."""
    import onnx_ir  # imports SymPy: 0.2 s
    from onnx_ir.passes.common import RemoveUnusedNodesPass

    kept = copy_of(model)
    del kept.graph.node[:]
    kept.graph.node.extend(nodes)
    graph = onnx_ir.from_proto(kept)
    RemoveUnusedNodesPass()(graph)
    return onnx_ir.to_proto(graph)
