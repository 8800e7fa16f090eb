"""What a summary is written from: the files of a run, and what the plan knows of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tightrope
from tightrope.artifacts.provenance import code_digest
from tightrope.engine_table import ENGINES
from tightrope.summary.cost import Prepared, Prices
from tightrope.summary.decision_types import Goal

Paths = Iterable[Path | str]
SCRIPTS = Path(tightrope.__file__).parents[1]
# what decides answers and times; the steps of an engine have its `build` or `load` besides
STEPS = (
    "prepare_data",
    "split_data",
    "prepare_checkpoint",
    "train_model",
    "export_onnx",
    "simplify_onnx",
    "calibrate",
    "quantize_onnx",
    "search_operators",
    "race_finalists",
)
OF_ENGINES = {"build": "build_engine", "time": "measure_latency", "evaluate": "measure_accuracy"}


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Files of a run.

    `engines`, `latencies` and `accuracies` are in the same order, `logits` are read with the
    latter; `checkpoints` has one per model, `splits` those of each model. `traffic` are the records
    of measurements under traffic, `profiles` those of operators, `causes` those of removed causes,
    `searches` those in `artifacts/{model}/`, `training` those of measured trainings, `activations`
    those of models paired with a reference, `races` those of the races per model and device,
    `families` those of models timed with the models that start from them, `studies` those of all
    studies, `caches` those of calibrations, `prepared` what holds the seconds of jobs before
    builds.
    """

    engines: Paths
    latencies: Paths
    accuracies: Paths
    logits: Paths = ()
    checkpoints: Paths
    splits: Paths
    traffic: Paths = ()
    profiles: Paths = ()
    causes: Paths = ()
    searches: Paths = ()
    training: Paths = ()
    activations: Paths = ()
    races: Paths = ()
    families: Paths = ()
    studies: Paths = ()
    caches: Paths = ()
    prepared: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the plan knows of a run.

    `configuration` names its files, `overrides` the values of --config, `code` has the digest of
    each step. `unavailable` holds (model, variant, reason), `baselines` the baseline variant by
    model and device, `references` the model with which a model's activation is compared. `failed`
    holds (model, variant, reason) of models without data or checkpoint. For `accept_disturbed` see
    `results.latency_entry`. `prices` are per hour by fingerprint of the host, or `*`; `prepared`
    are positions in `Inputs.prepared` of what was made before the engine of each variant.
    """

    unavailable: Sequence[tuple[str, str, str]]
    baselines: Mapping[str, Mapping[str, str]]
    budget_points: float
    configuration: Sequence[str] = ()
    overrides: Sequence[str] = ()
    code: Mapping[str, str] = field(default_factory=dict)
    failed: Sequence[tuple[str, str, str]] = ()
    references: Mapping[str, str] = field(default_factory=dict)
    accept_disturbed: bool = False
    goal: Goal | None = None
    prices: Prices = field(default_factory=dict)
    prepared: Prepared = field(default_factory=dict)

    def of_model(self, model: str) -> "Settings":
        """Return what the results of a model depend on, which is little to send to a process."""
        return Settings(
            unavailable=(),
            baselines={name: known for name, known in self.baselines.items() if name == model},
            budget_points=self.budget_points,
            accept_disturbed=self.accept_disturbed,
        )


def step_digests(scripts: Path = SCRIPTS) -> dict[str, str]:
    """Return the digest of the code of each step: `train_model`, or `build onnxruntime`.

    Those are the ones by which a rule is stale, without the modules that a source of data or a
    checkpoint loads by name.
    """
    found = {step: code_digest(scripts, f"{step}.py") for step in STEPS}
    for engine in ENGINES:
        module = f"tightrope/engines/{engine}.py"
        if (scripts / module).is_file():
            for name, step in OF_ENGINES.items():
                function = "build" if name == "build" else "load"
                digest = code_digest(scripts, f"{step}.py", f"{module}:{function}")
                found[f"{name} {engine}"] = digest
    return found
