"""Run ONNX graphs with ONNX Runtime: their outputs, compared, and the shapes of their tensors."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tightrope.errors import ArtifactError, in_one_line
from tightrope.inputs.arrays import Arrays, example_of
from tightrope.onnx.edit import copy_of
from tightrope.onnx.file import signature_of

# tensor -> its shape in each trial
Shapes = dict[str, list[tuple[int, ...]]]
# [batch, sequence] of the trial runs; a size in a tensor that equals neither is constant
TRIALS = ((3, 7), (2, 11))


def run_onnx(model: onnx.ModelProto, batches: list[Arrays], *, threads: int) -> list[np.ndarray]:
    """Return logits, float32 [batch, classes], of each batch; raise as `run_all` does."""
    return [outputs[0] for outputs in run_all(model, batches, threads=threads)]


def run_all(
    model: onnx.ModelProto, batches: list[Arrays], *, threads: int
) -> list[list[np.ndarray]]:
    """Return all outputs for each batch, by ONNX Runtime without optimizations.

    Raises ArtifactError with ONNX Runtime's reason where it cannot run the model.
    """
    try:
        session = open_model(model, threads=threads, optimized=False)
        return [session.run(None, batch) for batch in batches]
    except Exception as error:  # ONNX Runtime raises no specific class
        raise ArtifactError(f"ONNX Runtime cannot run the model: {in_one_line(error)}") from error


def open_model(model: onnx.ModelProto, *, threads: int, optimized: bool = True) -> Any:
    """Open a session of ONNX Runtime on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def require_equal(
    found: list[np.ndarray], expected: list[np.ndarray], *, path: Path | str, tolerance: float
) -> float:
    """Return the largest difference relative to the largest expected logit of its batch.

    Raises ArtifactError naming `path` where the difference exceeds `tolerance`, with the batch
    size, and where shapes differ or an expected logit is not finite.
    """
    worst = 0.0
    for ours, theirs in zip(found, expected, strict=True):
        if ours.shape != theirs.shape:
            raise ArtifactError(f"{path}: logits {ours.shape}, the checkpoint gives {theirs.shape}")
        if not np.isfinite(theirs).all():
            raise ArtifactError(f"{path}: the checkpoint returns NaN or inf")
        difference = float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-6))
        if not difference <= tolerance:
            raise ArtifactError(
                f"{path}: its outputs differ from the checkpoint's by {difference:.2g} "
                f"(allowed {tolerance:g}) on a batch of {len(ours)}; delete it and run again, "
                "and if that does not help report the model to the exporter"
            )
        worst = max(worst, difference)
    return worst


def shapes_seen(model: onnx.ModelProto) -> Shapes:
    """Return the shape of each tensor in both TRIALS; the file alone does not determine it.

    Raises ArtifactError where the model does not run.
    """
    copy = copy_of(model)
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
