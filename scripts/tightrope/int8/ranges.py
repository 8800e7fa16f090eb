"""Collect tensor statistics on samples: ranges, and bounds and means per channel."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays, batches_of_equal_length
from tightrope.jobs.progress import ProgressBar
from tightrope.onnx.attention import attention_in
from tightrope.onnx.edit import tensors_of, weighted_nodes, with_outputs
from tightrope.onnx.file import load_onnx
from tightrope.onnx.session import open_model

# tokens per batch: bounds memory for any sample count
TOKENS = 1024
# histograms for entropy and percentile; entropy tries every range of at least LEVELS of the BINS,
# so with as many bins as levels it would equal minmax
BINS = 2048
LEVELS = 128
HISTOGRAMS = ("entropy", "percentile")


class Statistics(NamedTuple):
    """Statistics of tensors: `ranges` of all, `channels` of the inputs of operators with weights.

    A range is [low, high], an entry of `channels` {"low": [...], "high": [...], "mean": [...]}.
    Channels lie on the last axis, for a convolution on the second.
    """

    ranges: dict[str, list[float]]
    channels: dict[str, dict[str, list[float]]]


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
    ranges: dict[str, list[float]],
    outputs: Callable[[str], Iterator[tuple[str, np.ndarray]]],
) -> dict[str, list[float]]:
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
