"""Fine-tune a classifier: epochs of steps, judged where asked, and resumed where it was left."""

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
from tightrope.training.batches import Batch, draw_epochs, draw_judged, in_parts, prefetched
from tightrope.training.examples import Subject
from tightrope.training.frozen_weights import freeze
from tightrope.training.progress import Report
from tightrope.training.recipe import Recipe, check_recipe, chosen_amp
from tightrope.training.state import TrainingState
from tightrope.training.step import Trainer

# batches that threads draw while a GPU computes; on a CPU they would take its cores
AHEAD = {"cpu": 0, "cuda": 8}


class EpochClock:
    """The time of the steps of one epoch after the other."""

    def start(self) -> None:
        """The steps of an epoch begin, or before the first their compilation."""
        self.began = time.perf_counter()

    def stop(self) -> dict[str, Any]:
        """They have ended: what is known of the epoch's time, `seconds` at least."""
        return {"seconds": time.perf_counter() - self.began}


@dataclass
class Course:
    """How far a training is: the loss of each step, and each epoch that is done.

    Each of `epochs` has `samples`, `steps`, `seconds` (of the steps; with `compile_s`, the first
    has those of torch.compile too), `loss` (the mean over its steps), `accuracy` on what was set
    apart and `accuracy_s`, both None without. `parts` is into how many a batch is cut to fit.
    """

    parts: int = 1
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
    parts: int = 1,
    clock: EpochClock | None = None,
) -> tuple[Course, dict[str, Any]]:
    """Train the model of `subject` in place by a whole recipe; its course and what it ran with.

    The latter are `steps`, `amp`, `device`, `samples` and `judged_samples`. With `state` it goes
    on from there where that has been begun, and the weights are the same as in one go. Each batch
    is learned from in so many `parts`; what was begun with fewer begins anew. What `clock` says of
    an epoch is kept with it.
    Raises TightropeError where the loss is no number, or `frozen` names what the model has not.
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
    loop = Loop(trainer, taught, judged, size, seed, state, Course(parts), AHEAD[device], clock)
    loop.restore()
    clock.start()
    if recipe["compile"]:
        loop.compile(epochs, dynamic=dynamic)
    loop.run(epochs, Report(steps, terminal, done=len(loop.course.losses)))
    trainer.release()
    samples = {"samples": len(taught.rows), "judged_samples": len(judged.rows) if judged else 0}
    return loop.course, {"steps": steps, "amp": amp, "device": device, **samples}


def split(subject: Subject, recipe: Recipe) -> tuple[Subject, Subject | None]:
    """What is trained on, and with `validate` what it is judged by; else all and None."""
    if not recipe["validate"]:
        return subject, None
    if len(subject.rows) < 2:
        raise TightropeError("train.validate: one example alone cannot be split; bring more data")
    taught, judged = draw_judged(len(subject.rows), recipe["seed"])
    return subject.part(taught), subject.part(judged)


@dataclass
class Loop:
    """The steps of a training and what happens between them."""

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
        """Go on where the state was left, unless its batches were cut into fewer parts."""
        found = self.state.read() if self.state else None
        if found and Course(**found[1]["course"]).parts >= self.course.parts:
            self.course = Course(**found[1]["course"])
            self.trainer.restore(found[0], found[1])
        elif self.state and self.course.parts > 1:
            self.keep()  # so that a run after a killed one knows that less fits

    def compile(self, epochs: list[list[Batch]], *, dynamic: bool) -> None:
        """Compile a program for each kind of shape, on the first of all batches that has it."""
        began, first = time.perf_counter(), {}
        for batch in (batch for batches in epochs for batch in batches):
            for piece in in_parts(batch, self.course.parts):
                shape = self.taught.shape(piece)
                # a program for any size is for any but 1
                first.setdefault(tuple(n == 1 for n in shape) if dynamic else shape, piece)
        self.trainer.compile(self.taught.batch(piece) for piece in first.values())
        self.trainer.wait()
        self.course.compile_s = time.perf_counter() - began

    def run(self, epochs: list[list[Batch]], report: Report) -> None:
        """Do the steps that are left; the clock of the first epoch runs already."""
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
                        self.keep()
                if last > done:
                    self.end_epoch(batches, whole=last == report.steps)
                first = last
                self.clock.start()

    def drawn(self, batch: Batch, number: int) -> list[tuple[Arrays, np.ndarray]]:
        """The parts of a batch; what is random in them depends on the seed and its number alone."""
        generator = np.random.default_rng([self.seed, number])
        pieces = in_parts(batch, self.course.parts)
        return [self.taught.batch(piece, generator) for piece in pieces]

    def settled(self) -> list[float]:
        """The losses of all steps; waits for the last, which a step does not."""
        self.course.losses += [loss.item() for loss in self.pending]
        self.pending.clear()
        if not np.isfinite(self.course.losses[-1]):
            raise TightropeError(
                "train: the loss is not a number any more; lower train.learning_rate, or take "
                "another train.amp"
            )
        return self.course.losses

    def end_epoch(self, batches: list[Batch], *, whole: bool) -> None:
        """Note the epoch that has ended, judge it, and keep the state unless that was `whole`."""
        self.trainer.wait()
        time_of_epoch = self.clock.stop()
        losses = self.settled()[-len(batches) :]
        began = time.perf_counter()
        accuracy = self.trainer.accuracy(self.examined()) if self.judged else None
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
            self.keep()

    def examined(self) -> Iterator[Any]:
        """Batches of what was set apart, neighbours in length together."""
        (batches,) = draw_epochs(
            len(self.judged.rows), self.judged.lengths, size=self.size, epochs=1, seed=0
        )
        return (self.judged.batch(batch) for batch in batches)

    def keep(self) -> None:
        """Write the state."""
        if self.pending:
            self.settled()
        tensors, facts = self.trainer.state()
        facts |= {"course": asdict(self.course)}
        self.state.write(tensors, facts, step=len(self.course.losses))
