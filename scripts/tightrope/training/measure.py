"""Measure training time on this machine: train for some epochs and discard the weights."""

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import torch
from msgspec import convert

from tightrope.artifacts.files import digest, sha256
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import SourceManifest
from tightrope.errors import WorkFailed
from tightrope.jobs.child import set_failure
from tightrope.jobs.execution import Execution
from tightrope.machine.interference import OF_RUN, QuietMachine
from tightrope.machine.processes import peak_rss_bytes
from tightrope.model.pruning import Changes
from tightrope.records.training import Epoch, SeedRun, TrainingRecord
from tightrope.training.examples import Start, load_start
from tightrope.training.loop import fine_tune
from tightrope.training.recipe import Recipe, run_training, whole_recipe
from tightrope.training.step import prepare_device

PROPERTIES = ("amp", "tf32", "steps", "samples", "held_out_samples")


def measure_training(
    source: Path | str,
    data: Path | str,
    target: Path | str,
    *,
    model: str,
    recipe: Recipe,
    changes: Changes,
    labels: list[str] | None,
    plan: dict[str, Any],
    quiet_seconds: float,
    device: str,
    execution: Execution,
    terminal: TextIO,
) -> None:
    """Write the TrainingRecord of a model's recipe, also if training fails.

    `data` is the train split. `plan` holds `epochs` and `seeds`, which override the recipe's. All
    jobs of the run together may lose `quiet_seconds` to other load. Raises TightropeError for a
    transient failure unless this is the last attempt.
    """
    record = TrainingRecord(
        model=model,
        host=execution.host(),
        libraries=execution.libraries,
        device=device,
        threads=execution.threads,
        recipe={
            **whole_recipe(recipe, 0),
            "epochs": plan["epochs"],
            "validate": True,
            "seed": None,
        },
        activation=changes.activation,
        plan=plan,
        source_sha256=digest(read_manifest(source, SourceManifest)["files"]),
        data_sha256=sha256(data),
    )
    machine = QuietMachine(sorted(os.sched_getaffinity(0)), quiet_seconds, terminal, OF_RUN)
    load = partial(load_start, source, data, changes=changes, names=labels)
    began, limits = time.monotonic(), execution.limits
    try:
        # each in a process of its own when the machine is quiet; all share the time of the limits
        for seed in plan["seeds"]:
            began += machine.wait()
            work = partial(run_seed, record, load, {**record.recipe, "seed": seed}, terminal)
            record.unit, run = run_training(work, record.recipe, limits=limits, began=began)
            record.runs.append(run)
    except WorkFailed as error:
        set_failure(record, error, f"{model}: training", limits)
    record.lost_s, record.busiest = machine.lost_s, machine.busiest
    record.write(target)


def run_seed(
    record: TrainingRecord,
    load: Callable[..., Start],
    recipe: Recipe,
    terminal: TextIO,
    micro_batches: int,
) -> tuple[str, SeedRun]:
    """Train what `load` returns for a recipe and its seed; return unit and run."""
    device = record.device
    prepare_device(device, record.threads)
    subject = load(recipe, seed=recipe["seed"]).subject(recipe)
    options: dict[str, Any] = {"terminal": terminal, "micro_batches": micro_batches}
    history, properties = fine_tune(subject, recipe, device=device, **options)
    return subject.unit, SeedRun(
        seed=recipe["seed"],
        **{name: properties[name] for name in PROPERTIES},
        micro_batches=history.micro_batches,
        compile_s=history.compile_s,
        peak_rss_bytes=peak_rss_bytes(),
        peak_device_bytes=torch.cuda.max_memory_allocated() if device == "cuda" else None,
        epochs=convert(history.epochs, list[Epoch]),
    )
