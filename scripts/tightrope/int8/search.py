"""int8-auto: plain int8, then SmoothQuant, then the most sensitive operators in float.

The first of these whose answers on the calibration split are within the accuracy budget is taken.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.files import sha256
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays, batches_of_equal_length
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.calibrate import read_cache
from tightrope.int8.quantization_noise import decibels
from tightrope.int8.quantize import quantize_onnx
from tightrope.int8.ranges import TOKENS
from tightrope.int8.switched_model import SwitchedModel
from tightrope.jobs.progress import ProgressBar
from tightrope.logit_distance import mean_divergence, relative_error
from tightrope.onnx.file import require_onnx_of
from tightrope.statistics import accuracy_verdict, paired_difference

SCHEMA = 2


@dataclass(frozen=True, kw_only=True)
class SearchInputs:
    """Files of a search: the simplified ONNX model, its quantized one, cache and samples."""

    onnx: Path | str
    quantized: Path | str
    calibration: Path | str
    data: Path | str
    checkpoint: Path | str


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How to search.

    `smoothquant` is the strength at which the model is smoothed, None for no smoothing. The
    sensitivity of operators is measured on the first `sensitivity_samples` of the split.
    """

    smoothquant: float | None
    budget_points: float
    sensitivity_samples: int
    max_sequence: int
    threads: int
    libraries: dict[str, str | None]


def search_operators(
    inputs: SearchInputs, target: Path | str, scheme: str, settings: SearchSettings
) -> None:
    """Write the strength of SmoothQuant, which operators stay in float, and every trial.

    A trial holds if its accuracy on the whole calibration split is `kept` within the budget,
    compared with the same model in float. Without labels, an answer counts as correct if it is that
    of the float model. `sensitivity` is None where it was not needed. Raises TightropeError where
    the split is too small to decide whether a budget holds.
    """
    for path in (inputs.onnx, inputs.quantized):
        require_onnx_of(path, inputs.checkpoint)
    examples = read_split(inputs.data)
    require_enough(inputs.data, len(examples), settings.budget_points)
    rows = load_encoder(inputs.checkpoint, max_sequence=settings.max_sequence)(examples)
    began = time.perf_counter()
    labels = [one["label"] for one in examples] if "label" in examples[0] else None
    judge = Judge(rows, labels, settings.budget_points / 100)
    found = searched(judge, inputs, scheme, settings)
    write_artifact(
        target,
        {
            "schema": SCHEMA,
            **found,
            "budget_points": settings.budget_points,
            "samples": len(examples),
            "seconds": time.perf_counter() - began,
            "trials": judge.trials,
            "sources": {
                Path(path).name: sha256(path)
                for path in (inputs.onnx, inputs.quantized, inputs.calibration)
            },
            "libraries": settings.libraries,
        },
    )


def searched(
    judge: "Judge", inputs: SearchInputs, scheme: str, settings: SearchSettings
) -> dict[str, Any]:
    """Return `smoothquant`, `in_float`, the number of `operators`, and their `sensitivity`."""
    model = SwitchedModel(inputs.onnx, inputs.quantized, threads=settings.threads)
    found = {"operators": len(model.operators), "sensitivity": None}
    if judge.holds(model, None, ()):
        return {**found, "smoothquant": None, "in_float": []}
    # an imported cache has only ranges
    has_channels = bool(read_cache(inputs.calibration, model=inputs.onnx)["channels"])
    strength = settings.smoothquant if has_channels else None
    if strength is not None:
        with TemporaryDirectory() as folder:
            quantized, repair = Path(folder, "model.onnx"), {"smoothquant": strength}
            quantize_onnx(inputs.onnx, inputs.calibration, quantized, scheme=scheme, repair=repair)
            model = SwitchedModel(inputs.onnx, quantized, threads=settings.threads)
        if judge.holds(model, strength, ()):
            return {**found, "smoothquant": strength, "in_float": []}
    few = judge.rows[: settings.sensitivity_samples]
    effects = sensitivities(model, few)
    order = sorted(effects, key=lambda name: -effects[name]["kl"])
    holding = (names for names in beginnings(order) if judge.holds(model, strength, names))
    return {
        **found,
        "smoothquant": strength,
        "in_float": sorted(next(holding, order)),
        "sensitivity": {"samples": len(few), "operators": effects},
    }


def beginnings(order: list[str]) -> Iterator[list[str]]:
    """Yield the first 1, 2, 4, 8, … operators of an order, but never all."""
    count = 1
    while count < len(order):
        yield order[:count]
        count *= 2


def require_enough(data: Path | str, samples: int, budget_points: float) -> None:
    """Raise TightropeError where `samples` are too few to decide whether a budget holds."""
    if accuracy_verdict(paired_difference(0, 0, samples), budget_points / 100) != "kept":
        raise TightropeError(
            f"{data}: {samples} calibration examples are too few to tell a loss of "
            f"{budget_points:g} points: enlarge calibration.pool or accuracy_budget_points"
        )


class Judge:
    """Compares answers on the encoded calibration split with those in float; keeps the trials."""

    def __init__(self, rows: Sequence[Arrays], labels: list[int] | None, budget: float) -> None:
        self.rows = rows
        self.labels = labels
        self.budget = budget
        self.trials: list[dict[str, Any]] = []
        # the answers of the model in float
        self.expected: np.ndarray | None = None

    def holds(
        self, model: SwitchedModel, smoothquant: float | None, in_float: Collection[str]
    ) -> bool:
        """Return whether the budget holds with the operators `in_float`, all others in int8."""
        began = time.perf_counter()
        passes = 1 if self.trials else 2
        with ProgressBar(f"trial {len(self.trials) + 1}", passes * len(self.rows)) as bar:
            if self.expected is None:
                self.expected = model.answers(self.rows, (), bar.add).argmax(axis=1)
            in_int8 = set(model.operators) - set(in_float)
            found = model.answers(self.rows, in_int8, bar.add).argmax(axis=1)
        labels = self.expected if self.labels is None else np.array(self.labels)
        gained = int(((found == labels) & (self.expected != labels)).sum())
        lost = int(((found != labels) & (self.expected == labels)).sum())
        change = paired_difference(gained, lost, len(labels))
        trial = {
            "smoothquant": smoothquant,
            "in_float": sorted(in_float),
            "gained": gained,
            "lost": lost,
            "flips": int((found != self.expected).sum()),
            "delta": change.value,
            "delta_low": change.low,
            "delta_high": change.high,
            "verdict": accuracy_verdict(change, self.budget),
            "seconds": time.perf_counter() - began,
        }
        self.trials.append(trial)
        print(
            f"{'int8' if smoothquant is None else f'SmoothQuant {smoothquant:g}'}, "
            f"{len(in_float)} of {len(model.operators)} operators in float: "
            f"{100 * change.value:+.2f} points, {trial['flips']} flips, {trial['verdict']}",
            flush=True,
        )
        return trial["verdict"] == "kept"


def sensitivities(model: SwitchedModel, rows: Sequence[Arrays]) -> dict[str, dict[str, float]]:
    """Return the effect of each operator alone in int8, all others in float, by its name.

    `agreement` (share of unchanged answers), `logit_error` and `kl` as in reports/summary.json,
    `sqnr_db` (signal-to-quantization-noise ratio of the operator's output, decibels).
    """
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
            # the share of rows with the same answer
            "agreement": float(
                np.mean(np.argmax(logits[None], axis=1) == np.argmax(logits[name], axis=1))
            ),
            "logit_error": relative_error(logits[name], logits[None]) or 0.0,
            "kl": mean_divergence(logits[None], logits[name]),
            "sqnr_db": decibels(*power[name]),
        }
        for name in model.operators
    }
