"""Ranges that quantization-aware training learnt, for the tensors of an ONNX file.

A module of the checkpoint is found in another program by its weights, because exporting,
simplifying and compiling rename, transpose and scale them.
"""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from safetensors.numpy import load_file

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.errors import TightropeError
from tightrope.onnx.edit import rows_of, weight
from tightrope.onnx.file import load_onnx
from tightrope.onnx.weights import weighted_nodes

Ranges = dict[str, list[float]]
WEIGHTS = "model.safetensors"
# of the cosine between the weights of a channel, which may differ in a factor
TOLERANCE = 1e-5


class LearntRanges:
    """The range of the input of each module of a checkpoint, found by the module's weights."""

    def __init__(self, checkpoint: Path | str) -> None:
        """Read manifest `checkpoint`; raise TightropeError where no ranges were learnt."""
        learnt = read_manifest(checkpoint, CheckpointManifest).get("qat")
        if not learnt:
            raise TightropeError(
                f"{checkpoint}: no ranges were learnt; give the model a qat recipe"
            )
        weights = load_file(Path(checkpoint).parent / WEIGHTS)
        names = {name: f"{name}.weight" for name in learnt["ranges"]}
        if missing := [name for name in names.values() if name not in weights]:
            raise TightropeError(f"{checkpoint}: {WEIGHTS} has no {missing[0]}; train it again")
        self.modules = {name: directions(weights[key]) for name, key in names.items()}
        self.ranges: Ranges = learnt["ranges"]

    def of_weights(self, values: np.ndarray) -> list[float] | None:
        """Return [low, high] of the module with the weights [outputs, ...], None without one.

        They may be multiplied by one number per output channel, as where a normalization or the
        scale of attention is folded into them.
        """
        wanted = directions(values)
        for name, known in self.modules.items():
            if known.shape == wanted.shape and same_directions(known, wanted):
                return self.ranges[name]
        return None


def directions(values: np.ndarray) -> np.ndarray:
    """Return float32 [outputs, others], each row of length 1, or 0 where the weights are 0."""
    rows = values.reshape(len(values), -1).astype(np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


def same_directions(known: np.ndarray, wanted: np.ndarray) -> bool:
    """Return whether the rows of two arrays are parallel, or both 0."""
    cosines = np.abs((known * wanted).sum(axis=1))
    empty = ~known.any(axis=1) & ~wanted.any(axis=1)
    return bool(np.all((cosines > 1 - TOLERANCE) | empty))


def with_learnt_ranges(ranges: Ranges, onnx_path: Path | str, checkpoint: Path | str) -> Ranges:
    """Return `ranges` of tensors, with learnt ones for the inputs of operators with weights.

    A tensor that several modules read has the range that holds all of theirs. Raises TightropeError
    where no operator has the weights of a module.
    """
    learnt, model = LearntRanges(checkpoint), load_onnx(onnx_path)
    found: Ranges = {}
    for node in weighted_nodes(model):
        own = learnt.of_weights(outputs_first(node, weight(model, node)))
        if own is not None:
            known = found.get(node.input[0], own)
            found[node.input[0]] = [min(own[0], known[0]), max(own[1], known[1])]
    if not found:
        raise TightropeError(f"{onnx_path}: no operator has the weights of {checkpoint}")
    print(f"{len(found)} of {len(ranges)} ranges were learnt in training, the others are minmax")
    return {**ranges, **found}


def outputs_first(node: onnx.NodeProto, values: np.ndarray) -> Any:
    """Return the weights of an operator with output channels first."""
    return values if node.op_type == "Conv" else rows_of(node, values).T
