"""Fine-tune a classifier: epochs of steps, optional validation, resume from a saved state."""

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TextIO, TypedDict

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from tightrope.artifacts.content import read_artifact, write_artifact
from tightrope.artifacts.files import sha256, storage_errors
from tightrope.errors import ArtifactError, TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.jobs.progress import ProgressBar
from tightrope.machine.counters import own_seconds
from tightrope.machine.interference import Windows
from tightrope.training.examples import (
    Batch,
    Subject,
    draw_epochs,
    draw_validation,
    prefetched,
    split_micro_batches,
)
from tightrope.training.recipe import Recipe, resolve_amp
from tightrope.training.step import Tensors, Trainer, rounds_to_tf32
from tightrope.training.teaching import UNLABELLED

# batches prefetched by threads during GPU work; on a CPU the threads would take its cores
AHEAD = {"cpu": 0, "cuda": 8}
# so often a training looks whether its loss is finite, besides after each epoch
LOOKS = 10
EVERY_S = 60.0


@dataclass
class History:
    """Training history: the loss of each step, and a record of each finished epoch.

    Each of `epochs` has `samples`, `steps`, `seconds` (of the steps; the first epoch includes the
    time of torch.compile, `compile_s`), the `foreign_cores` that other programs used meanwhile,
    `loss` (mean over its steps), and validation `accuracy` and `accuracy_s`, both None without
    validation. `micro_batches` is their number per batch.
    """

    micro_batches: int = 1
    losses: list[float] = field(default_factory=list)
    epochs: list[dict[str, Any]] = field(default_factory=list)
    compile_s: float | None = None


class Saved(TypedDict):
    """state.json: the key of a training run, its tensor file, and the values beside the tensors."""

    key: str
    file: str
    sha256: str
    facts: dict[str, Any]


class TrainingState:
    """Folder with the last state: `state.json`, and the tensor file that it names.

    The JSON is written last, so that a complete state exists at any moment. A state with another
    `key`, or whose tensors have another sha256, counts as missing.
    """

    def __init__(self, folder: Path | str, key: str, *, every_s: float = EVERY_S) -> None:
        """Use `folder` for training run `key`; a new state is due `every_s` after the last."""
        self.folder, self.key, self.every_s = Path(folder), key, every_s
        self.file = self.folder / "state.json"
        self.written = time.monotonic()

    def due(self) -> bool:
        """Whether the last state is older than `every_s`."""
        return time.monotonic() - self.written >= self.every_s

    def write(self, tensors: Tensors, values: dict[str, Any], *, step: int) -> None:
        """Replace the last state by the state after `step` steps; raises StorageError."""
        tensors = {name: value.cpu() for name, value in tensors.items()}
        target = self.folder / f"step-{step}.safetensors"
        with storage_errors(target):
            self.folder.mkdir(parents=True, exist_ok=True)
            part = target.with_suffix(".part")
            save_file(tensors, part)
            part.replace(target)
        document = {"file": target.name, "sha256": sha256(target), "key": self.key}
        write_artifact(self.file, {**document, "facts": values})
        for old in self.folder.iterdir():
            if old not in (target, self.file):
                old.unlink()
        self.written = time.monotonic()

    def read(self) -> tuple[Tensors, dict[str, Any]] | None:
        """Return tensors and values of the last state of this training run, None if missing."""
        try:
            document = read_artifact(self.file, Saved)
            if document["key"] != self.key:
                return None
            tensors = self.folder / Path(document["file"]).name
            if sha256(tensors) != document["sha256"]:
                return None
            return load_file(tensors), document["facts"]
        except (ArtifactError, SafetensorError):
            return None

    def clear(self) -> None:
        """Delete the state; raises StorageError."""
        with storage_errors(self.folder):
            if self.folder.exists():
                shutil.rmtree(self.folder)


def fine_tune(
    subject: Subject,
    recipe: Recipe,
    *,
    device: str,
    terminal: TextIO,
    state: TrainingState | None = None,
    micro_batches: int = 1,
) -> tuple[History, dict[str, Any]]:
    """Train the model of `subject` in place by a whole recipe; return history and properties.

    The properties are `steps`, `amp`, `tf32`, `device`, `samples`, `held_out_samples`. With
    `state`, an interrupted run is resumed and ends with the same weights; a state with fewer
    `micro_batches` per batch is discarded. Raises TightropeError if the loss is not finite, or if
    the model lacks a module of `frozen`.
    """
    for name in ("channels_last", "augmentation"):
        if subject.lengths is not None and recipe[name] not in (False, "off"):
            raise TightropeError(f"train.{name}: only for images; remove it")
    amp = resolve_amp(recipe["amp"], device)
    training, validation = split(subject, recipe)
    options = {"size": recipe["batch"], "epochs": recipe["epochs"], "seed": recipe["seed"]}
    epochs = list(draw_epochs(len(training.rows), training.lengths, **options))
    steps = sum(map(len, epochs))
    subject.prepare(subject.model, device)
    freeze(subject.model, recipe["frozen"])
    objective = subject.teaching and subject.teaching.objective(subject.model)
    trainer = Trainer(
        subject.model,
        recipe,
        steps=steps,
        device=device,
        amp=amp,
        dynamic=subject.lengths is not None,
        objective=objective,
    )
    loop = Loop(trainer, recipe, training, validation, state, History(micro_batches))
    loop.restore()
    if done := len(loop.history.losses):
        print(f"fine-tuning: goes on after step {done:,} of {steps:,}", file=terminal, flush=True)
    loop.begin_epoch()
    if recipe["compile"]:
        loop.compile(epochs)
    with ProgressBar("fine-tuning", steps, done) as bar:
        loop.run(epochs, bar)
    trainer.release()
    held_out = len(validation.rows) if validation else 0
    samples = {"samples": len(training.rows), "held_out_samples": held_out}
    tf32 = device == "cuda" and rounds_to_tf32()
    return loop.history, {"steps": steps, "amp": amp, "tf32": tf32, "device": device, **samples}


def split(subject: Subject, recipe: Recipe) -> tuple[Subject, Subject | None]:
    """Return the training and the validation examples; all and None without `validate`."""
    if not recipe["validate"]:
        return subject, None
    if len(subject.rows) < 2:
        raise TightropeError("train.validate: one example alone cannot be split; bring more data")
    # texts without a label come last
    labelled = int((subject.labels != UNLABELLED).sum())
    training, validation = draw_validation(labelled, recipe["seed"])
    unlabelled = range(labelled, len(subject.rows))
    return subject.part([*training, *unlabelled]), subject.part(validation)


@dataclass
class Loop:
    """Training loop: the steps, and the work between them."""

    trainer: Trainer
    recipe: Recipe
    training: Subject
    validation: Subject | None
    state: TrainingState | None
    history: History
    pending: list[torch.Tensor] = field(default_factory=list)

    def begin_epoch(self) -> None:
        """Start timing an epoch, the first with compilation."""
        self.window = Windows(sorted(os.sched_getaffinity(0)), own_seconds)
        self.began = time.perf_counter()

    def restore(self) -> None:
        """Resume from the saved state, unless it used fewer micro-batches per batch."""
        saved = self.state.read() if self.state else None
        history = saved and History(**saved[1]["course"])
        if saved and history and history.micro_batches >= self.history.micro_batches:
            self.history = history
            self.trainer.restore(*saved)
        elif self.state and self.history.micro_batches > 1:
            # a restart after a kill then begins with these smaller micro-batches
            self.save_state()

    def compile(self, epochs: list[list[Batch]]) -> None:
        """Compile one program per kind of shape, on the first micro-batch that has it."""
        began = time.perf_counter()
        first: dict[tuple[int, ...], Batch] = {}
        for batch in (batch for batches in epochs for batch in batches):
            for micro_batch in split_micro_batches(batch, self.history.micro_batches):
                shape = self.training.shape(micro_batch)
                if self.training.lengths is not None:
                    # even a program with dynamic sizes does not cover size 1
                    shape = tuple(size == 1 for size in shape)
                first.setdefault(shape, micro_batch)
        self.trainer.compile(self.training.batch(micro_batch) for micro_batch in first.values())
        self.trainer.wait()
        self.history.compile_s = time.perf_counter() - began

    def run(self, epochs: list[list[Batch]], bar: ProgressBar) -> None:
        """Run the remaining steps; the clock of the first epoch has already started."""
        done, first, ahead = len(self.history.losses), 0, AHEAD[self.trainer.device]
        whole = sum(map(len, epochs))
        for batches in epochs:
            last = first + len(batches)
            steps = range(max(first, done), last)
            tasks = (partial(self.micro_batches, batches[step - first], step) for step in steps)
            for step, batch in zip(steps, prefetched(tasks, ahead=ahead), strict=True):
                self.pending.append(self.trainer.learn(batch))
                bar.reach(step + 1)
                if (step + 1) % max(1, whole // LOOKS) == 0:
                    self.read_losses()
                if self.state and self.state.due() and step + 1 < last:
                    self.save_state()
            if last > done:
                self.end_epoch(batches, whole=last == whole)
            first = last
            self.begin_epoch()

    def micro_batches(self, batch: Batch, step: int) -> list[tuple[Arrays, Arrays]]:
        """Return the micro-batches of a batch; randomness depends only on the seed and `step`."""
        generator = np.random.default_rng([self.recipe["seed"], step])
        micro_batches = split_micro_batches(batch, self.history.micro_batches)
        return [self.training.batch(micro_batch, generator) for micro_batch in micro_batches]

    def read_losses(self) -> list[float]:
        """Return the losses of all steps; waits for the last step, unlike a step itself."""
        self.history.losses += [loss.item() for loss in self.pending]
        self.pending.clear()
        if not np.isfinite(self.history.losses[-1]):
            raise TightropeError(
                "train: training diverged (loss is NaN or infinite); lower train.learning_rate, or "
                "take another train.amp"
            )
        return self.history.losses

    def end_epoch(self, batches: list[Batch], *, whole: bool) -> None:
        """Record the finished epoch, validate, and save the state unless the run is complete."""
        self.trainer.wait()
        seconds, foreign_cores = time.perf_counter() - self.began, self.window.close()
        losses = self.read_losses()[-len(batches) :]
        epoch = {
            "samples": sum(map(len, batches)),
            "steps": len(batches),
            "seconds": seconds,
            "foreign_cores": foreign_cores,
            "loss": float(np.mean(losses)),
            "accuracy": None,
            "accuracy_s": None,
        }
        if judged := self.validation:
            began = time.perf_counter()
            size = self.recipe["batch"]
            (drawn,) = draw_epochs(len(judged.rows), judged.lengths, size=size, epochs=1, seed=0)
            epoch["accuracy"] = self.trainer.accuracy(judged.batch(batch) for batch in drawn)
            epoch["accuracy_s"] = time.perf_counter() - began
        self.history.epochs.append(epoch)
        if not whole:
            self.save_state()

    def save_state(self) -> None:
        """Save the training state, where it is asked for."""
        if self.state is None:
            return
        if self.pending:
            self.read_losses()
        tensors, values = self.trainer.state()
        values |= {"course": asdict(self.history)}
        self.state.write(tensors, values, step=len(self.history.losses))


def freeze(model: Any, modules: Sequence[str]) -> None:
    """Freeze every weight of the named modules; all other weights are trained.

    Raises TightropeError for a name without weights, or if nothing is left to train.
    """
    names = [name for name, _ in model.named_parameters()]
    for module in modules:
        if not any(name.startswith(f"{module}.") for name in names):
            parents = dict.fromkeys(name.rpartition(".")[0] for name in names)
            available = ", ".join(filter(None, parents))
            raise TightropeError(
                f"train.frozen: {type(model).__name__} has no module {module} with weights; "
                f"name some of {available}, or a module that holds them"
            )
    for name, weight in model.named_parameters():
        weight.requires_grad_(not name.startswith(tuple(f"{module}." for module in modules)))
    if not any(weight.requires_grad for weight in model.parameters()):
        raise TightropeError("train.frozen: nothing is left to train; name fewer modules")
