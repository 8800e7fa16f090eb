"""Trials: sets of operators in float, evaluated on the calibration split and saved."""

import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tightrope.artifacts.content import read_artifact, write_artifact
from tightrope.artifacts.int8_types import Trials
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.int8.switched_model import SwitchedModel
from tightrope.jobs.progress import ProgressBar, Tell
from tightrope.statistics import accuracy_verdict, paired_difference

Trial = dict[str, Any]


def require_enough(data: Path | str, samples: int, budget_points: float) -> None:
    """Raise TightropeError where `samples` are too few to decide whether a budget holds."""
    if accuracy_verdict(paired_difference(0, 0, samples), budget_points / 100) != "kept":
        raise TightropeError(
            f"{data}: {samples} calibration examples are too few to tell a loss of "
            f"{budget_points:g} points: enlarge calibration.pool or accuracy_budget_points"
        )


class TrialStore(NamedTuple):
    """File of the trials made so far, valid for a search with the same `key`."""

    path: Path
    key: str

    def write(self, trials: list[Trial]) -> None:
        """Replace the trials in the file."""
        write_artifact(self.path, {"key": self.key, "trials": trials})


class TrialEvaluator:
    """Evaluates sets of float operators on the calibration split, each once; saves to `store`.

    The bar of a trial shows how many of `seconds` all trials have taken, that of the first trial,
    which may take longer, its rows.
    """

    def __init__(
        self,
        model: SwitchedModel,
        rows: Sequence[Arrays],
        labels: list[int] | None,
        budget: float,
        store: TrialStore,
        *,
        seconds: float,
    ) -> None:
        self.model = model
        self.rows = rows
        self.labels = labels
        self.budget = budget
        self.store = store
        self.trials: list[Trial] = remembered(*store)
        self.expected: np.ndarray | None = None
        self.limit = seconds

    @property
    def seconds(self) -> float:
        """Seconds of all trials, including those of earlier sessions."""
        return sum(trial["seconds"] for trial in self.trials)

    def has_time(self, seconds: float) -> bool:
        """Return whether another trial, as long as the longest so far, ends within `seconds`."""
        longest = max((trial["seconds"] for trial in self.trials), default=0.0)
        return self.seconds + longest <= seconds

    def holds(self, in_float: Collection[str]) -> bool:
        """Return whether the budget holds with the operators `in_float`."""
        names = sorted(in_float)
        trial = next((one for one in self.trials if one["in_float"] == names), None)
        if trial is None:
            trial = {"in_float": names, **self.tried(set(names))}
            self.trials.append(trial)
            self.store.write(self.trials)
        return trial["verdict"] == "kept"

    def bar(self) -> ProgressBar:
        """Return the bar of the next trial."""
        if self.trials:
            return ProgressBar("search", self.limit, done=self.seconds)
        return ProgressBar("first trial", 2 * len(self.rows))

    def clock(self, bar: ProgressBar) -> Tell:
        """Return a function that sets the bar to the seconds of all trials, whatever it is told."""
        began = time.perf_counter() - self.seconds
        return lambda rows: bar.reach(time.perf_counter() - began)

    def tried(self, in_float: set[str]) -> Trial:
        """Measure the accuracy change with the operators `in_float`."""
        began, model = time.perf_counter(), self.model
        with self.bar() as bar:
            tell = bar.add if not self.trials else self.clock(bar)
            if self.expected is None:
                self.expected = model.answers(self.rows, (), tell).argmax(axis=1)
            found = model.answers(self.rows, set(model.operators) - in_float, tell).argmax(axis=1)
        labels = self.expected if self.labels is None else np.array(self.labels)
        gained = int(((found == labels) & (self.expected != labels)).sum())
        lost = int(((found != labels) & (self.expected == labels)).sum())
        change = paired_difference(gained, lost, len(labels))
        trial = {
            "gained": gained,
            "lost": lost,
            "flips": int((found != self.expected).sum()),
            "delta": change.value,
            "delta_low": change.low,
            "delta_high": change.high,
            "verdict": accuracy_verdict(change, self.budget),
            "seconds": time.perf_counter() - began,
        }
        print(
            f"{len(in_float)} of {len(model.operators)} operators in float: "
            f"{100 * change.value:+.2f} points, {trial['flips']} flips, {trial['verdict']}",
            flush=True,
        )
        return trial


def labels_of(examples: Sequence[dict[str, Any]]) -> list[int] | None:
    """Return the labels of the examples, None where they have none."""
    return [one["label"] for one in examples] if "label" in examples[0] else None


def remembered(state: Path, key: str) -> list[Trial]:
    """Return the saved trials of an interrupted search with the same `key`."""
    if not state.is_file():
        return []
    document = read_artifact(state, Trials)
    return document["trials"] if document["key"] == key else []
