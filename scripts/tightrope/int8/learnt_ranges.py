"""Ranges that quantization-aware training learnt, for the tensors of an ONNX file.

A module of the checkpoint is found in another program by its weights, because exporting,
simplifying and compiling rename, transpose and scale them.
"""

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.errors import TightropeError
from tightrope.onnx.edit import constant_of, rows_of, weighted_nodes
from tightrope.onnx.file import load_onnx

Ranges = dict[str, list[float]]
WEIGHTS = "model.safetensors"
# of the cosine between the weights of a channel, which may differ in a factor
TOLERANCE = 1e-5


class LearntRanges:
    """The ranges of the input, maybe the output, of a checkpoint's modules, found by weights."""

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
        self.lengths = {name: row_lengths(weights[key]) for name, key in names.items()}
        self.ranges: Ranges = learnt["ranges"]
        self.outputs: Ranges = learnt.get("outputs", {})

    def of_weights(self, values: np.ndarray) -> list[float] | None:
        """Return [low, high] of the module with the weights [outputs, ...], None without one.

        They may be multiplied by one number per output channel, as where a normalization or the
        scale of attention is folded into them.
        """
        name = self.module_of(values)
        return None if name is None else self.ranges[name]

    def of_output(self, values: np.ndarray) -> list[float] | None:
        """Return [low, high] of what the module with the weights [outputs, ...] returns.

        That of a convolution is behind the normalization that is folded into it. That of a product
        has the factor by which all its weights are multiplied; None where they have several.
        """
        name = self.module_of(values)
        if name is None or name not in self.outputs:
            return None
        low, high = self.outputs[name]
        if values.ndim > 2:
            return [low, high]
        known, wanted = self.lengths[name], row_lengths(values)
        signs = np.sign((self.modules[name] * directions(values)).sum(axis=1))
        factors = (signs * wanted)[known > 0] / known[known > 0]
        if not len(factors) or not np.allclose(factors, factors[0], rtol=1e-4):
            return None
        return sorted(float(end * factors[0]) for end in (low, high))

    def module_of(self, values: np.ndarray) -> str | None:
        """Return the module whose weights have these directions, None where there is none."""
        wanted = directions(values)
        for name, known in self.modules.items():
            if known.shape != wanted.shape:
                continue
            cosines = np.abs((known * wanted).sum(axis=1))
            empty = ~known.any(axis=1) & ~wanted.any(axis=1)
            if np.all((cosines > 1 - TOLERANCE) | empty):
                return name
        return None


def directions(values: np.ndarray) -> np.ndarray:
    """Return float32 [outputs, others], each row of length 1, or 0 where the weights are 0."""
    rows, lengths = values.reshape(len(values), -1).astype(np.float32), row_lengths(values)[:, None]
    return rows / np.where(lengths > 0, lengths, 1)


def row_lengths(values: np.ndarray) -> np.ndarray:
    """Return the Euclidean length of the weights of each output channel, float32 [outputs]."""
    rows = values.reshape(len(values), -1).astype(np.float32)
    return np.asarray(np.linalg.norm(rows, axis=1))


def with_learnt_ranges(ranges: Ranges, onnx_path: Path | str, checkpoint: Path | str) -> Ranges:
    """Return `ranges` of tensors, with learnt ones for operators with weights.

    These are of the inputs, and of the outputs where the checkpoint learnt them. A tensor that
    several modules read or return has the range that holds all of theirs. Raises TightropeError
    where no operator has the weights of a module.
    """
    learnt, model = LearntRanges(checkpoint), load_onnx(onnx_path)
    found: Ranges = {}
    for node in weighted_nodes(model):
        values = constant_of(model, node.input[1])
        # output channels first
        values = values if node.op_type == "Conv" else rows_of(node, values).T
        for name, own in (
            (node.input[0], learnt.of_weights(values)),
            (node.output[0], learnt.of_output(values)),
        ):
            if own is not None:
                known = found.get(name, own)
                found[name] = [min(own[0], known[0]), max(own[1], known[1])]
    if not found:
        raise TightropeError(f"{onnx_path}: no operator has the weights of {checkpoint}")
    print(f"{len(found)} of {len(ranges)} ranges were learnt in training, the others are minmax")
    return {**ranges, **found}
