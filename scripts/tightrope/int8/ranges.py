"""Ranges of tensors: from statistics on samples, or as quantization-aware training learnt them.

A module of the checkpoint that has learnt a range is found in another program by its weights,
because exporting, simplifying and compiling rename, transpose and scale them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load_file

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays, batches_of_equal_length
from tightrope.jobs.progress import ProgressBar
from tightrope.onnx.attention import attention_in
from tightrope.onnx.edit import constant_of, rows_of, tensors_of, weighted_nodes, with_outputs
from tightrope.onnx.file import load_onnx
from tightrope.onnx.session import open_model

# tokens per batch: bounds memory for any sample count
TOKENS = 1024
# histograms for entropy and percentile; entropy tries every range of at least LEVELS of the BINS,
# so with as many bins as levels it would equal minmax
BINS = 2048
LEVELS = 128
HISTOGRAMS = ("entropy", "percentile")
WEIGHTS = "model.safetensors"
# of the cosine between the weights of a channel, which may differ in a factor
TOLERANCE = 1e-5
# tensor -> [low, high]
Ranges = dict[str, list[float]]
# tensor -> {"low": [...], "high": [...], "mean": [...]}
Channels = dict[str, dict[str, list[float]]]


class Statistics(NamedTuple):
    """Statistics of tensors: `ranges` of all, `channels` of the inputs of operators with weights.

    Channels lie on the last axis, for a convolution on the second.
    """

    ranges: Ranges
    channels: Channels


def collect_statistics(
    onnx_path: Path | str,
    rows: Sequence[Arrays],
    *,
    method: str,
    percentile: float | None,
    threads: int,
) -> Statistics:
    """Return statistics on encoded samples `rows` of every tensor that a scheme may quantize.

    Those are the inputs and outputs of the operators with weights, and what attention multiplies.
    `minmax` ranges reach from the lowest to the highest value. `percentile` keeps the given
    percentage of the values and cuts half of the rest off each end; `entropy` takes the range whose
    histogram loses the least information in int8 (Migacz 2017, "8-bit Inference with TensorRT").
    Raises TightropeError naming tensor, operator and sample where a value is not finite.
    """
    model = load_onnx(onnx_path)
    axes = {node.input[0]: 1 if node.op_type == "Conv" else -1 for node in weighted_nodes(model)}
    both = [name for node in weighted_nodes(model) for name in (node.input[0], node.output[0])]
    # not the probabilities of attention, the largest tensor: they are 0 to 1 for any data
    both += [name for attention in attention_in(model)[0] for name in attention.measured]
    tensors = list(dict.fromkeys(both))
    session = open_model(with_outputs(model, tensors), threads=threads)
    makers = {name: node.name for node in model.graph.node for name in node.output}

    def outputs(title: str) -> Iterator[tuple[str, np.ndarray]]:
        with ProgressBar(title, len(rows)) as bar:
            for batch in batches_of_equal_length(rows, tokens=TOKENS):
                for name, array in zip(tensors, tensors_of(session, tensors, batch), strict=True):
                    what = f"{onnx_path}: tensor {name} of operator {makers.get(name, 'the graph')}"
                    require_finite(array, what, batch, rows)
                    yield name, array
                bar.add(len(next(iter(batch.values()))))

    bounds = {name: Bounds(axes.get(name)) for name in tensors}
    for name, array in outputs("ranges"):
        bounds[name].add(array)
    ranges = {name: one.range for name, one in bounds.items()}
    if method in HISTOGRAMS:
        ranges = chosen_ranges(method, percentile, ranges, outputs)
    channels = {name: one.channels() for name, one in bounds.items() if name in axes}
    return Statistics(ranges, channels)


class Bounds:
    """Lowest, highest and mean value of a tensor, per channel where it has a channel axis."""

    def __init__(self, axis: int | None) -> None:
        self.axis = axis
        self.low: Any = np.inf
        self.high: Any = -np.inf
        self.sum: Any = 0.0
        self.count = 0

    def add(self, array: np.ndarray) -> None:
        """Add a batch."""
        flat = by_channel(array, self.axis)
        self.low = np.minimum(self.low, flat.min(axis=0))
        self.high = np.maximum(self.high, flat.max(axis=0))
        self.sum = self.sum + flat.sum(axis=0, dtype=np.float64)
        self.count += len(flat)

    @property
    def range(self) -> list[float]:
        """Lowest and highest value over all channels."""
        return [float(np.min(self.low)), float(np.max(self.high))]

    def channels(self) -> dict[str, list[float]]:
        """Return `low`, `high` and `mean` per channel, to six significant digits."""
        found = {"low": self.low, "high": self.high, "mean": self.sum / self.count}
        return {name: [float(f"{one:.6g}") for one in values] for name, values in found.items()}


def by_channel(array: np.ndarray, axis: int | None) -> np.ndarray:
    """Return `array` as [values, channels], with a single channel where `axis` is None."""
    if axis is None:
        return array.reshape(-1, 1)
    return np.moveaxis(array, axis, -1).reshape(-1, array.shape[axis])


def chosen_ranges(
    method: str,
    percentile: float | None,
    ranges: Ranges,
    outputs: Callable[[str], Iterator[tuple[str, np.ndarray]]],
) -> Ranges:
    """Return ranges by entropy or percentile from a second pass over the values.

    The first pass gave `ranges`, so the bins do not depend on the order of the samples.
    """
    from onnxruntime.quantization.calibrate import HistogramCollector

    counts = {name: np.zeros(BINS, np.int64) for name in ranges}
    limits = {name: max(map(abs, pair)) or 1.0 for name, pair in ranges.items()}
    for name, array in outputs("histograms"):
        scaled = (array.reshape(-1) + limits[name]) * (BINS / (2 * limits[name]))
        indices = np.minimum(scaled.astype(np.int32), BINS - 1)
        counts[name] += np.bincount(indices, minlength=BINS)
    found = {}
    with ProgressBar(method, len(ranges)) as bar:
        for name, pair in ranges.items():
            collector = HistogramCollector(method, False, BINS, LEVELS, percentile or 100.0, "same")
            edges = np.linspace(-limits[name], limits[name], BINS + 1, dtype=np.float32)
            low, high, limit = (np.float32(bound) for bound in (*pair, limits[name]))
            collector.histogram_dict[name] = (counts[name], edges, low, high, limit)
            with redirect_stdout(StringIO()):
                chosen = collector.compute_collection_result()[name]
            found[name] = [float(chosen[0]), float(chosen[1])]
            bar.add()
    return found


def require_finite(array: np.ndarray, what: str, batch: Arrays, rows: Sequence[Arrays]) -> None:
    """Raise TightropeError naming `what` and the sample of `rows` where a value is not finite."""
    if np.isfinite(array).all():
        return
    first = int(np.argwhere(~np.isfinite(array))[0][0])
    key, values = next(iter(batch.items()))
    # the first axis may be batch x tokens
    own = values[first * len(values) // len(array)]
    sample = next(index for index, row in enumerate(rows) if np.array_equal(row[key], own))
    raise TightropeError(
        f"{what} is not finite (NaN or infinity) on calibration sample {sample}; fix the "
        "checkpoint, or leave the sample out"
    )


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
