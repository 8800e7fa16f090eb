"""int8-auto: the fewest operators left in float so that the accuracy budget holds."""

import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.errors import TightropeError
from tightrope.files import digest, read_json, sha256, write_json
from tightrope.inputs import Arrays, load_encoder, read_split
from tightrope.statistics import accuracy_verdict, paired_difference
from tightrope.switched_model import SwitchedModel

SCHEMA = 1
# int8 that saves nothing comes first
NOTHING = 1e-12
Trial = dict[str, Any]


def search_operators(
    onnx_path: Path | str,
    quantized: Path | str,
    sensitivity: Path | str,
    costs: Path | str,
    data: Path | str,
    checkpoint: Path | str,
    target: Path | str,
    *,
    state: Path | str,
    budget_points: float,
    seconds: float,
    max_sequence: int,
    threads: int,
    libraries: dict[str, str | None],
) -> None:
    """Write which operators of `quantized` stay in float, and every trial that led there.

    A trial holds where its accuracy on the whole calibration split is `kept` within the budget,
    against the same model in float; examples without labels count as right where the answer
    stays. Trials are kept in `state` too, from which an interrupted search goes on; it ends after
    `seconds` of all its sessions together, but not before one trial holds. Raises TightropeError
    where the split is too small to tell that a budget holds.
    """
    examples = read_split(data, "calibration")
    rows = load_encoder(checkpoint, max_sequence=max_sequence)(examples)
    ranking = ranked(read_json(sensitivity)["operators"], read_json(costs)["operators"])
    sources = {path: sha256(path) for path in (onnx_path, quantized)}
    key = digest([sorted(sources.values()), digest(examples), max_sequence, budget_points])
    model = SwitchedModel(onnx_path, quantized, threads=threads)
    judge = Judge(model, rows, labels_of(examples), budget_points / 100, state=Path(state), key=key)
    if not judge.holds(model.operators):
        raise TightropeError(
            f"{data}: {len(examples)} calibration examples are too few to tell a loss of "
            f"{budget_points:g} points: enlarge calibration.pool or accuracy_budget_points"
        )
    in_float, stop = search(judge, [name for name, _ in ranking], seconds)
    write_json(
        target,
        {
            "schema": SCHEMA,
            "in_float": in_float,
            "stop": stop,
            "budget_points": budget_points,
            "samples": len(examples),
            "seconds": judge.seconds,
            "ranking": [{"operator": name, "kl_per_ms": value} for name, value in ranking],
            "trials": judge.trials,
            "sources": {Path(path).name: digest for path, digest in sources.items()},
            "libraries": libraries,
        },
    )


def ranked(
    sensitivity: dict[str, dict[str, float]], costs: dict[str, list[dict[str, float]]]
) -> list[tuple[str, float]]:
    """Operators with the divergence that each brings for a millisecond saved, highest first.

    Milliseconds are those of all measured shapes, each divided by its rows.
    """
    found = []
    for name, fields in sensitivity.items():
        saved = sum(
            1e3 * (one["float_s"] - one["int8_s"]) / (one["batch"] * one["sequence"])
            for one in costs[name]
        )
        found.append((name, fields["kl"] / max(saved, NOTHING)))
    return sorted(found, key=lambda pair: -pair[1])


def search(judge: "Judge", ranking: list[str], seconds: float) -> tuple[list[str], str]:
    """Operators to leave in float, and why no more was tried: `minimum` or `time limit`.

    The shortest beginning of the ranking that holds, found by halving; then each of its
    operators, the least sensitive first, goes back to int8 where that still holds.
    """
    known_to_fail, holds = -1, len(ranking)
    while holds - known_to_fail > 1:
        if judge.seconds > seconds:
            return sorted(ranking[:holds]), "time limit"
        # all in int8 is tried first: nothing needs to be searched where it holds
        middle = 0 if known_to_fail < 0 else (known_to_fail + holds) // 2
        if judge.holds(ranking[:middle]):
            holds = middle
        else:
            known_to_fail = middle
    chosen = ranking[:holds]
    for name in reversed(chosen):
        if judge.seconds > seconds:
            return sorted(chosen), "time limit"
        fewer = [one for one in chosen if one != name]
        if judge.holds(fewer):
            chosen = fewer
    return sorted(chosen), "minimum"


class Judge:
    """Tries choices of operators on the calibration split, each once; remembers in `state`."""

    def __init__(
        self,
        model: SwitchedModel,
        rows: list[Arrays],
        labels: list[int] | None,
        budget: float,
        *,
        state: Path,
        key: str,
    ) -> None:
        self.model = model
        self.rows = rows
        self.budget = budget
        self.state = state
        self.key = key
        self.trials: list[Trial] = remembered(state, key)
        self.expected: np.ndarray | None = None
        self.labels = labels

    @property
    def seconds(self) -> float:
        """Seconds of all trials, those of earlier sessions too."""
        return sum(trial["seconds"] for trial in self.trials)

    def holds(self, in_float: Collection[str]) -> bool:
        """Whether the budget holds with those operators in float."""
        names = sorted(in_float)
        trial = next((one for one in self.trials if one["in_float"] == names), None)
        if trial is None:
            trial = self.tried(names)
            self.trials.append(trial)
            write_json(self.state, {"key": self.key, "trials": self.trials})
        return trial["verdict"] == "kept"

    def tried(self, names: list[str]) -> Trial:
        """The change of accuracy with those operators in float, measured."""
        began = time.perf_counter()
        if self.expected is None:
            self.expected = self.model.answers(self.rows, ()).argmax(axis=1)
        in_int8 = set(self.model.operators) - set(names)
        found = self.model.answers(self.rows, in_int8).argmax(axis=1)
        labels = self.expected if self.labels is None else np.array(self.labels)
        gained = int(((found == labels) & (self.expected != labels)).sum())
        lost = int(((found != labels) & (self.expected == labels)).sum())
        change = paired_difference(gained, lost, len(labels))
        trial = {
            "in_float": names,
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
            f"{len(names)} of {len(self.model.operators)} operators in float: "
            f"{100 * change.value:+.2f} points, {trial['flips']} flips, {trial['verdict']}",
            flush=True,
        )
        return trial


def labels_of(examples: list[dict[str, Any]]) -> list[int] | None:
    """The labels of the examples, None where they have none."""
    return [one["label"] for one in examples] if "label" in examples[0] else None


def remembered(state: Path, key: str) -> list[Trial]:
    """The trials of an interrupted search of the same things, none of another."""
    if not state.is_file():
        return []
    document = read_json(state)
    return document["trials"] if document["key"] == key else []
