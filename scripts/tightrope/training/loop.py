"""Fine-tune a classifier: epochs of steps, optional validation, resume from a saved state."""

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TextIO

import numpy as np
import torch
from tqdm import tqdm

from tightrope.durations import in_words
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
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
from tightrope.training.state import TrainingState
from tightrope.training.step import Trainer, rounds_to_tf32
from tightrope.training.teaching import UNLABELLED

# batches prefetched by threads during GPU work; on a CPU the threads would take its cores
AHEAD = {"cpu": 0, "cuda": 8}
# progress lines of a training
LINES = 10


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


class Report:
    """Print a line for each tenth of the training, with the estimated time left."""

    def __init__(self, steps: int, terminal: TextIO, *, done: int = 0) -> None:
        """Start the clock for `steps` steps; an earlier run has finished `done` of them."""
        self.steps, self.terminal, self.before = steps, terminal, done
        self.start = time.perf_counter()
        self.marks = {max(1, round(steps * part / LINES)) for part in range(1, LINES + 1)}
        if done:
            self.say(f"goes on after step {done:,} of {steps:,}")

    def __call__(self, losses: list[float]) -> None:
        """Report the last step, which completes a tenth."""
        done = len(losses)
        step_s = (time.perf_counter() - self.start) / (done - self.before)
        loss = float(np.mean(losses[-max(1, self.steps // LINES) :]))
        left = in_words(step_s * (self.steps - done))
        self.say(f"step {done:,} of {self.steps:,}, loss {loss:.2f}, about {left} left")

    def say(self, line: str) -> None:
        """Print one line."""
        print(f"fine-tuning: {line}", file=self.terminal, flush=True)


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
    loop.begin_epoch()
    if recipe["compile"]:
        loop.compile(epochs)
    loop.run(epochs, Report(steps, terminal, done=len(loop.history.losses)))
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

    def run(self, epochs: list[list[Batch]], report: Report) -> None:
        """Run the remaining steps; the clock of the first epoch has already started."""
        done, first, ahead = len(self.history.losses), 0, AHEAD[self.trainer.device]
        bar = tqdm(total=report.steps, initial=done, desc="fine-tuning", mininterval=2)
        with bar:
            for batches in epochs:
                last = first + len(batches)
                steps = range(max(first, done), last)
                tasks = (partial(self.micro_batches, batches[step - first], step) for step in steps)
                for step, batch in zip(steps, prefetched(tasks, ahead=ahead), strict=True):
                    self.pending.append(self.trainer.learn(batch))
                    bar.update()
                    if step + 1 in report.marks:
                        report(self.read_losses())
                    if self.state and self.state.due() and step + 1 < last:
                        self.save_state()
                if last > done:
                    self.end_epoch(batches, whole=last == report.steps)
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
