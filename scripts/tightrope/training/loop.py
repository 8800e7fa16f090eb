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
from tightrope.training.progress import Report
from tightrope.training.recipe import Recipe, check_recipe, chosen_amp
from tightrope.training.state import TrainingState
from tightrope.training.step import Trainer

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
class Course:
    """Training progress: the loss of each step, and a record of each finished epoch.

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
) -> tuple[Course, dict[str, Any]]:
    """Train the model of `subject` in place by a whole recipe; return its course and run facts.

    The facts are `steps`, `amp`, `device`, `samples` and `held_out_samples`. With `state`, an
    interrupted run is resumed and ends with the same weights as an uninterrupted run. Each batch is
    split into so many `micro_batches`; a state with fewer is discarded and training restarts. The
    measurements of `clock` are kept with each epoch. Raises TightropeError if the loss is not
    finite, or if `frozen` names modules that the model does not have.
    """
    check_recipe(recipe, images=subject.lengths is None)
    amp = chosen_amp(recipe["amp"], device)
    taught, judged = split(subject, recipe)
    size, seed = recipe["batch"], recipe["seed"]
    options = {"size": size, "epochs": recipe["epochs"], "seed": seed}
    epochs = list(draw_epochs(len(taught.rows), taught.lengths, **options))
    steps = sum(map(len, epochs))
    subject.prepare(subject.model, device)
    freeze(subject.model, recipe["frozen"])
    dynamic = subject.lengths is not None
    trainer = Trainer(subject.model, recipe, steps=steps, device=device, amp=amp, dynamic=dynamic)
    clock = clock or EpochClock()
    course = Course(micro_batches)
    loop = Loop(trainer, taught, judged, size, seed, state, course, AHEAD[device], clock)
    loop.restore()
    clock.start()
    if recipe["compile"]:
        loop.compile(epochs, dynamic=dynamic)
    loop.run(epochs, Report(steps, terminal, done=len(loop.course.losses)))
    trainer.release()
    samples = {"samples": len(taught.rows), "held_out_samples": len(judged.rows) if judged else 0}
    return loop.course, {"steps": steps, "amp": amp, "device": device, **samples}


def split(subject: Subject, recipe: Recipe) -> tuple[Subject, Subject | None]:
    """Return the training and the validation examples; all and None without `validate`."""
    if not recipe["validate"]:
        return subject, None
    if len(subject.rows) < 2:
        raise TightropeError("train.validate: one example alone cannot be split; bring more data")
    taught, judged = draw_validation(len(subject.rows), recipe["seed"])
    return subject.part(taught), subject.part(judged)


@dataclass
class Loop:
    """Training loop: the steps, and the work between them."""

    trainer: Trainer
    taught: Subject
    judged: Subject | None
    size: int
    seed: int
    state: TrainingState | None
    course: Course
    ahead: int
    clock: EpochClock
    pending: list[torch.Tensor] = field(default_factory=list)

    def restore(self) -> None:
        """Resume from the saved state, unless it used fewer micro-batches per batch."""
        found = self.state.read() if self.state else None
        if found and Course(**found[1]["course"]).micro_batches >= self.course.micro_batches:
            self.course = Course(**found[1]["course"])
            self.trainer.restore(found[0], found[1])
        elif self.state and self.course.micro_batches > 1:
            # a restart after a kill then begins with these smaller micro-batches
            self.keep(self.state)

    def compile(self, epochs: list[list[Batch]], *, dynamic: bool) -> None:
        """Compile one program per kind of shape, on the first micro-batch that has it."""
        began = time.perf_counter()
        first: dict[tuple[int, ...], Batch] = {}
        for batch in (batch for batches in epochs for batch in batches):
            for piece in split_micro_batches(batch, self.course.micro_batches):
                shape = self.taught.shape(piece)
                # even a program with dynamic sizes does not cover size 1
                first.setdefault(tuple(n == 1 for n in shape) if dynamic else shape, piece)
        self.trainer.compile(self.taught.batch(piece) for piece in first.values())
        self.trainer.wait()
        self.course.compile_s = time.perf_counter() - began

    def run(self, epochs: list[list[Batch]], report: Report) -> None:
        """Run the remaining steps; the clock of the first epoch has already started."""
        done, first = len(self.course.losses), 0
        bar = tqdm(total=report.steps, initial=done, desc="fine-tuning", mininterval=2)
        with bar:
            for batches in epochs:
                last = first + len(batches)
                numbers = range(max(first, done), last)
                tasks = (partial(self.drawn, batches[n - first], n) for n in numbers)
                for number, drawn in zip(numbers, prefetched(tasks, ahead=self.ahead), strict=True):
                    self.pending.append(self.trainer.learn(drawn))
                    bar.update()
                    if number + 1 in report.marks:
                        report(self.settled())
                    if self.state and self.state.due() and number + 1 < last:
                        self.keep(self.state)
                if last > done:
                    self.end_epoch(batches, whole=last == report.steps)
                first = last
                self.clock.start()

    def drawn(self, batch: Batch, number: int) -> list[tuple[Arrays, np.ndarray]]:
        """Return the micro-batches of a batch; randomness depends only on the seed and `number`."""
        generator = np.random.default_rng([self.seed, number])
        pieces = split_micro_batches(batch, self.course.micro_batches)
        return [self.taught.batch(piece, generator) for piece in pieces]

    def settled(self) -> list[float]:
        """Return the losses of all steps; waits for the last step, unlike a step itself."""
        self.course.losses += [loss.item() for loss in self.pending]
        self.pending.clear()
        if not np.isfinite(self.course.losses[-1]):
            raise TightropeError(
                "train: training diverged (loss is NaN or infinite); lower train.learning_rate, or "
                "take another train.amp"
            )
        return self.course.losses

    def end_epoch(self, batches: list[Batch], *, whole: bool) -> None:
        """Record the finished epoch, validate, and save the state unless the run is complete."""
        self.trainer.wait()
        time_of_epoch = self.clock.stop()
        losses = self.settled()[-len(batches) :]
        began = time.perf_counter()
        accuracy = self.trainer.accuracy(self.examined(self.judged)) if self.judged else None
        self.course.epochs.append(
            {
                "samples": sum(map(len, batches)),
                "steps": len(batches),
                **time_of_epoch,
                "loss": float(np.mean(losses)),
                "accuracy": accuracy,
                "accuracy_s": time.perf_counter() - began if self.judged else None,
            }
        )
        if self.state and not whole:
            self.keep(self.state)

    def examined(self, judged: Subject) -> Iterator[Any]:
        """Yield validation batches of examples of similar length."""
        (batches,) = draw_epochs(len(judged.rows), judged.lengths, size=self.size, epochs=1, seed=0)
        return (judged.batch(batch) for batch in batches)

    def keep(self, state: TrainingState) -> None:
        """Save the training state."""
        if self.pending:
            self.settled()
        tensors, facts = self.trainer.state()
        facts |= {"course": asdict(self.course)}
        state.write(tensors, facts, step=len(self.course.losses))
