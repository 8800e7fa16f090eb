"""Measure quantization noise of the activations and weights of a Q/DQ file on samples."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from tightrope.inputs.arrays import Arrays, batches_of_equal_length
from tightrope.int8.ranges import TOKENS, by_channel
from tightrope.jobs.progress import ProgressBar
from tightrope.onnx.edit import WEIGHTED, before_qdq, constant_of, copy_of, tensors_of, with_outputs
from tightrope.onnx.file import load_onnx
from tightrope.onnx.session import open_model

# thresholds of the findings: share of saturated values, levels reached, channel ratio
SATURATED = 0.01
FEWEST_LEVELS = 16
UNEVEN = 100.0


def quantization_noise(
    quantized: Path | str, rows: Sequence[Arrays], *, threads: int
) -> list[dict[str, Any]]:
    """Return a record per quantized input of an operator, the noisiest first.

    Operators are those with weights, and the products of attention where they are quantized, which
    have two such inputs; their channels and weights are not judged (ratios of 1).
    Values come from encoded samples `rows`, with no activation quantized before them. Fields:
    `operator`, `tensor`, `low` and `high` of the calibrated range, `measured_low` and
    `measured_high` of the values, `saturated` (share of values beyond the range), `levels` (how
    many of the 256 the values reach), `sqnr_db` (signal-to-quantization-noise ratio),
    `channel_ratio` (largest over median bound of the channels), `weight_ratio` (largest over
    smallest scale of the weights) and `findings` (text).
    """
    model = load_onnx(quantized)
    inputs = quantized_inputs(model)
    tensors = list(dict.fromkeys(one["tensor"] for one in inputs))
    # activations bypass their Q/DQ
    exact = copy_of(model)
    producers = {name: node for node in exact.graph.node for name in node.output}
    for node in exact.graph.node:
        node.input[:] = [before_qdq(name, producers) for name in node.input]
    session = open_model(with_outputs(exact, tensors), threads=threads)
    seen = {one["tensor"]: TensorNoise(one) for one in inputs}
    with ProgressBar("quantization noise", len(rows)) as bar:
        for batch in batches_of_equal_length(rows, tokens=TOKENS):
            for name, values in zip(tensors, tensors_of(session, tensors, batch), strict=True):
                seen[name].add(values)
            bar.add(len(next(iter(batch.values()))))
    found = []
    for one in inputs:
        facts = {name: one[name] for name in ("operator", "tensor", "low", "high")}
        scales = one["weight_scales"]
        facts["weight_ratio"] = ratio(scales.max(), scales.min())
        facts |= seen[one["tensor"]].facts()
        found.append({**facts, "findings": findings(facts)})
    return sorted(found, key=lambda one: one["sqnr_db"])


def quantized_inputs(model: onnx.ModelProto) -> list[dict[str, Any]]:
    """Return operator, tensor, step, type, range and weight scales per quantized activation.

    For a product of two activations `axis` is None, and its weight scale 1.
    """
    producers = {name: node for node in model.graph.node for name in node.output}
    found = []
    for node in model.graph.node:
        pair = [producers[name] for name in node.input[:2] if name in producers]
        if node.op_type not in WEIGHTED or len(pair) < 2:
            continue
        if {one.op_type for one in pair} != {"DequantizeLinear"}:
            continue
        sources = [producers[one.input[0]] for one in pair if one.input[0] in producers]
        weighted = len(sources) == 1
        scales = constant_of(model, pair[1].input[1]) if weighted else np.ones(1)
        axis = (1 if node.op_type == "Conv" else -1) if weighted else None
        for source in sources:
            scale, zero = (constant_of(model, name) for name in source.input[1:3])
            integer = np.issubdtype(zero.dtype, np.integer)
            limits = np.iinfo(zero.dtype) if integer else ml_dtypes.finfo(zero.dtype)
            facts = {
                "operator": node.name,
                "tensor": source.input[0],
                "step": float(scale),
                "type": zero.dtype,
                "low": float((float(limits.min) - int(zero)) * scale),
                "high": float((float(limits.max) - int(zero)) * scale),
                "axis": axis,
                "weight_scales": scales,
            }
            found.append(facts)
    return found


class TensorNoise:
    """Accumulates the quantization error of one tensor over batches."""

    def __init__(self, tensor: dict[str, Any]) -> None:
        self.tensor = tensor
        self.low, self.high = np.inf, -np.inf
        self.bounds: Any = 0.0
        self.power = np.zeros(2)  # signal, noise
        self.beyond = self.count = 0

    def add(self, values: np.ndarray) -> None:
        """Add the values of a batch."""
        low, high, step, kind = (self.tensor[name] for name in ("low", "high", "step", "type"))
        if np.issubdtype(kind, np.integer):
            held = np.clip(np.round((values - low) / step) * step + low, low, high)
        else:
            held = (np.clip(values, low, high) / step).astype(kind).astype(np.float32) * step
        self.low, self.high = min(self.low, values.min()), max(self.high, values.max())
        channels = by_channel(np.abs(values), self.tensor["axis"])
        self.bounds = np.maximum(self.bounds, channels.max(axis=0))
        self.power += np.square(values).sum(), np.square(values - held).sum()
        # values up to half a step beyond the range round into it
        self.beyond += int(((values < low - step / 2) | (values > high + step / 2)).sum())
        self.count += values.size

    def facts(self) -> dict[str, float]:
        """Return the fields of `quantization_noise` that depend on the values."""
        signal, noise = self.power
        top, bottom = min(self.high, self.tensor["high"]), max(self.low, self.tensor["low"])
        step, kind = self.tensor["step"], self.tensor["type"]
        if np.issubdtype(kind, np.integer):
            levels = 1 + round(float((top - bottom) / step))
        else:
            every = np.arange(256, dtype=np.uint8).view(kind).astype(np.float32) * step
            levels = len(np.unique(every[(every >= bottom) & (every <= top)]))
        return {
            "measured_low": float(self.low),
            "measured_high": float(self.high),
            "saturated": self.beyond / self.count,
            "levels": max(1, levels),
            "sqnr_db": decibels(signal, noise),
            "channel_ratio": ratio(self.bounds.max(), np.median(self.bounds)),
        }


def findings(one: dict[str, Any]) -> list[str]:
    """Return the problems of a tensor's range, in words."""
    words = []
    if one["saturated"] > SATURATED:
        words.append(
            f"{100 * one['saturated']:.0f} % of its values, {one['measured_low']:.3g} to "
            f"{one['measured_high']:.3g}, lie beyond the range {one['low']:.3g} to "
            f"{one['high']:.3g}"
        )
    if one["levels"] < FEWEST_LEVELS:
        words.append(f"its values reach {one['levels']} of 256 levels")
    if one["channel_ratio"] > UNEVEN:
        words.append(f"its largest channel is {one['channel_ratio']:.0f} times the median one")
    return words


def decibels(signal: float, noise: float) -> float:
    """Return the ratio of two powers in decibels, at most 200."""
    return min(200.0, float(10 * np.log10(max(signal, 1e-30) / noise))) if noise > 0 else 200.0


def ratio(larger: float, smaller: float) -> float:
    """Return `larger` over `smaller`, at most a million."""
    return float(min(1e6, larger / smaller)) if smaller > 0 else 1e6
