"""Shapes of the tensors of an ONNX graph, seen in trial runs."""

import numpy as np
import onnx

from tightrope.inputs.arrays import example_of
from tightrope.onnx.file import signature_of
from tightrope.onnx.row_dependencies import Shapes
from tightrope.onnx.session import run_all

# [batch, sequence] of the trial runs; a size in a tensor that equals neither is constant
TRIALS = ((3, 7), (2, 11))


def shapes_seen(model: onnx.ModelProto) -> Shapes:
    """Return the shape of each tensor in both TRIALS; the file alone does not determine it.

    Raises ArtifactError where the model does not run.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    names = [name for node in copy.graph.node for name in node.output if name]
    del copy.graph.output[:]
    copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    batches = [example_of(signature_of(model), *trial) for trial in TRIALS]
    given = [{name: array.shape for name, array in batch.items()} for batch in batches]
    constants = {tensor.name: tuple(tensor.dims) for tensor in copy.graph.initializer}
    found = [
        {name: np.shape(value) for name, value in zip(names, values, strict=True)}
        for values in run_all(copy, batches, threads=1)
    ]
    trials = [{**constants, **one, **seen} for one, seen in zip(given, found, strict=True)]
    return {name: [trial[name] for trial in trials] for name in trials[0]}
