"""Fine-tune a classifier: epochs of steps, optional validation, resume from a saved state."""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TextIO

import numpy as np
import torch
from tqdm import tqdm

from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.training.batches import (
    Batch,
    draw_epochs,
    draw_validation,
    prefetched,
    split_micro_batches,
)
from tightrope.training.examples import Subject
from tightrope.training.frozen_weights import freeze
from tightrope.training.objective import UNLABELLED
from tightrope.training.progress import Report
from tightrope.training.recipe import Recipe, check_recipe, resolve_amp
from tightrope.training.state import TrainingState
from tightrope.training.step import Trainer, rounds_to_tf32

# batches prefetched by threads during GPU work; on a CPU the threads would take its cores
AHEAD = {"cpu": 0, "cuda": 8}


class EpochClock:
    """Clock that times the steps of each epoch."""

    def start(self) -> None:
        """Start timing an epoch; before the first epoch, this includes compilation."""
        self.began = time.perf_counter()

    def stop(self) -> dict[str, Any]:
        """Stop timing and return the epoch's measurements, `seconds` at least."""
        return {"seconds": time.perf_counter() - self.began}


@dataclass
class History:
    """Training history: the loss of each step, and a record of each finished epoch.

    Each of `epochs` has `samples`, `steps`, `seconds` (of the steps; the first epoch includes the
    time of torch.compile, `compile_s`), `loss` (mean over its steps), and validation `accuracy` and
    `accuracy_s`, both None without validation. `micro_batches` is their number per batch.
    """

    micro_batches: int = 1
    losses: list[float] = field(default_factory=list)
    epochs: list[dict[str, Any]] = field(default_factory=list)
    compile_s: float | None = None


def fine_tune(
    subject: Subject,
    recipe: Recipe,
    *,
    device: str,
    terminal: TextIO,
    state: TrainingState | None = None,
    micro_batches: int = 1,
    clock: EpochClock | None = None,
) -> tuple[History, dict[str, Any]]:
    """Train the model of `subject` in place by a whole recipe; return history and properties.

    The properties are `steps`, `amp`, `tf32`, `device`, `samples`, `held_out_samples`. With
    `state`, an interrupted run is resumed and ends with the same weights; a state with fewer
    `micro_batches` per batch is discarded. The measurements of `clock` are kept with each epoch.
    Raises TightropeError if the loss is not finite, or if the model lacks a module of `frozen`.
    """
    check_recipe(recipe, images=subject.lengths is None)
    amp = resolve_amp(recipe["amp"], device)
    training, validation = split(subject, recipe)
    size, seed = recipe["batch"], recipe["seed"]
    options = {"size": size, "epochs": recipe["epochs"], "seed": seed}
    epochs = list(draw_epochs(len(training.rows), training.lengths, **options))
    steps = sum(map(len, epochs))
    trainer = trainer_of(subject, recipe, steps=steps, device=device, amp=amp)
    history, clock = History(micro_batches), clock or EpochClock()
    loop = Loop(trainer, training, validation, size, seed, state, history, AHEAD[device], clock)
    loop.restore()
    clock.start()
    if recipe["compile"]:
        loop.compile(epochs, dynamic=subject.lengths is not None)
    loop.run(epochs, Report(steps, terminal, done=len(loop.history.losses)))
    trainer.release()
    held_out = len(validation.rows) if validation else 0
    samples = {"samples": len(training.rows), "held_out_samples": held_out}
    tf32 = device == "cuda" and rounds_to_tf32()
    return loop.history, {"steps": steps, "amp": amp, "tf32": tf32, "device": device, **samples}


def trainer_of(subject: Subject, recipe: Recipe, *, device: str, **options: Any) -> Trainer:
    """Return the trainer of the prepared model, with a teacher's loss if there is one."""
    subject.prepare(subject.model, device)
    freeze(subject.model, recipe["frozen"])
    objective = subject.teaching and subject.teaching.objective(subject.model)
    options |= {"dynamic": subject.lengths is not None, "objective": objective}
    return Trainer(subject.model, recipe, device=device, **options)


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
    training: Subject
    validation: Subject | None
    size: int
    seed: int
    state: TrainingState | None
    history: History
    ahead: int
    clock: EpochClock
    pending: list[torch.Tensor] = field(default_factory=list)

    def restore(self) -> None:
        """Resume from the saved state, unless it used fewer micro-batches per batch."""
        saved = self.state.read() if self.state else None
        if saved and History(**saved[1]["course"]).micro_batches >= self.history.micro_batches:
            self.history = History(**saved[1]["course"])
            self.trainer.restore(saved[0], saved[1])
        elif self.state and self.history.micro_batches > 1:
            # a restart after a kill then begins with these smaller micro-batches
            self.save_state(self.state)

    def compile(self, epochs: list[list[Batch]], *, dynamic: bool) -> None:
        """Compile one program per kind of shape, on the first micro-batch that has it."""
        began = time.perf_counter()
        first: dict[tuple[int, ...], Batch] = {}
        for batch in (batch for batches in epochs for batch in batches):
            for micro_batch in split_micro_batches(batch, self.history.micro_batches):
                shape = self.training.shape(micro_batch)
                # even a program with dynamic sizes does not cover size 1
                first.setdefault(
                    tuple(size == 1 for size in shape) if dynamic else shape, micro_batch
                )
        self.trainer.compile(self.training.batch(micro_batch) for micro_batch in first.values())
        self.trainer.wait()
        self.history.compile_s = time.perf_counter() - began

    def run(self, epochs: list[list[Batch]], report: Report) -> None:
        """Run the remaining steps; the clock of the first epoch has already started."""
        done, first = len(self.history.losses), 0
        bar = tqdm(total=report.steps, initial=done, desc="fine-tuning", mininterval=2)
        with bar:
            for batches in epochs:
                last = first + len(batches)
                steps = range(max(first, done), last)
                tasks = (partial(self.micro_batches, batches[step - first], step) for step in steps)
                for step, batch in zip(steps, prefetched(tasks, ahead=self.ahead), strict=True):
                    self.pending.append(self.trainer.learn(batch))
                    bar.update()
                    if step + 1 in report.marks:
                        report(self.read_losses())
                    if self.state and self.state.due() and step + 1 < last:
                        self.save_state(self.state)
                if last > done:
                    self.end_epoch(batches, whole=last == report.steps)
                first = last
                self.clock.start()

    def micro_batches(self, batch: Batch, step: int) -> list[tuple[Arrays, Arrays]]:
        """Return the micro-batches of a batch; randomness depends only on the seed and `step`."""
        generator = np.random.default_rng([self.seed, step])
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
        epoch_times = self.clock.stop()
        losses = self.read_losses()[-len(batches) :]
        began = time.perf_counter()
        accuracy = (
            self.trainer.accuracy(self.validation_batches(self.validation))
            if self.validation
            else None
        )
        self.history.epochs.append(
            {
                "samples": sum(map(len, batches)),
                "steps": len(batches),
                **epoch_times,
                "loss": float(np.mean(losses)),
                "accuracy": accuracy,
                "accuracy_s": time.perf_counter() - began if self.validation else None,
            }
        )
        if self.state and not whole:
            self.save_state(self.state)

    def validation_batches(self, subject: Subject) -> Iterator[Any]:
        """Yield validation batches of examples of similar length."""
        (batches,) = draw_epochs(
            len(subject.rows), subject.lengths, size=self.size, epochs=1, seed=0
        )
        return (subject.batch(batch) for batch in batches)

    def save_state(self, state: TrainingState) -> None:
        """Save the training state."""
        if self.pending:
            self.read_losses()
        tensors, values = self.trainer.state()
        values |= {"course": asdict(self.history)}
        state.write(tensors, values, step=len(self.history.losses))
