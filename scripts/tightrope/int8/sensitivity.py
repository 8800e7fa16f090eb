"""Measure how each operator with weights, alone in int8, changes a model's answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.files import sha256
from tightrope.inputs.arrays import Arrays, batches_of_equal_length
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.calibrate import samples_sha256
from tightrope.int8.quantization_noise import decibels
from tightrope.int8.ranges import TOKENS
from tightrope.int8.switched_model import SwitchedModel
from tightrope.jobs.progress import ProgressBar
from tightrope.logit_distance import mean_divergence, relative_error
from tightrope.onnx.file import require_onnx_of

SCHEMA = 1


def measure_sensitivity(
    onnx_path: Path | str,
    quantized: Path | str,
    data: Path | str,
    checkpoint: Path | str,
    target: Path | str,
    *,
    samples: int,
    max_sequence: int,
    threads: int,
    libraries: dict[str, str | None],
) -> None:
    """Write the effect of each operator of `quantized` alone in int8, all others in float.

    On the first `samples` examples of the split `data`, per operator: `agreement` (share of
    unchanged answers), `logit_error` and `kl` as in reports/summary.json, `sqnr_db`
    (signal-to-quantization-noise ratio of the operator's output, decibels).
    """
    for path in (onnx_path, quantized):
        require_onnx_of(path, checkpoint)
    examples = read_split(data)[:samples]
    rows = load_encoder(checkpoint, max_sequence=max_sequence)(examples)
    model = SwitchedModel(onnx_path, quantized, threads=threads)
    write_artifact(
        target,
        {
            "schema": SCHEMA,
            "samples": len(examples),
            "model_sha256": sha256(onnx_path),
            "quantized_sha256": sha256(quantized),
            "samples_sha256": samples_sha256(examples),
            "libraries": libraries,
            "operators": sensitivities(model, rows),
        },
    )


def sensitivities(model: SwitchedModel, rows: Sequence[Arrays]) -> dict[str, dict[str, float]]:
    """Return the sensitivity fields per operator name."""
    logits: dict[str | None, list[Any]] = {name: [] for name in (None, *model.operators)}
    power = {name: np.zeros(2) for name in model.operators}  # signal, noise
    # equal lengths, because padding would count as noise
    batches = list(batches_of_equal_length(rows, tokens=TOKENS))
    with ProgressBar("sensitivity", len(batches) * len(model.operators)) as bar:
        for batch in batches:
            reference, *outputs = model.run(batch, (), *model.outputs.values())
            logits[None] += reference.tolist()
            for name, expected in zip(model.operators, outputs, strict=True):
                answer, found = model.run(batch, (name,), model.outputs[name])
                logits[name] += answer.tolist()
                power[name] += np.square(expected).sum(), np.square(found - expected).sum()
                bar.add()
    return {
        name: {
            "agreement": agreement(logits[None], logits[name]),
            "logit_error": relative_error(logits[name], logits[None]) or 0.0,
            "kl": mean_divergence(logits[None], logits[name]),
            "sqnr_db": decibels(*power[name]),
        }
        for name in model.operators
    }


def agreement(one: list[Any], other: list[Any]) -> float:
    """Return the share of rows of logits with the same answer."""
    return float(np.mean(np.argmax(one, axis=1) == np.argmax(other, axis=1)))
