"""What a summary is written from; the results of all models, and their hosts.

Each model is read in a process of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

import tightrope
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.artifacts.provenance import code_digest
from tightrope.engine_table import ENGINES
from tightrope.jobs.spread import spread
from tightrope.machine.host import host_key
from tightrope.records.accuracy import ROUNDING, AccuracyRecord
from tightrope.records.latency import LatencyRecord, MachineSpeed
from tightrope.records.record import Record
from tightrope.summary.accuracy import ReferenceLogits, Split
from tightrope.summary.candidates import Prepared, Prices
from tightrope.summary.decision_types import Goal
from tightrope.summary.measured import Engines, Kind, engines_in_use, require_data, require_own
from tightrope.summary.models import SplitsByModel, evaluation_split
from tightrope.summary.result_types import Host, Result
from tightrope.summary.results import result_entry
from tightrope.variants import parse

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
    latter; `checkpoints` has one per model, `splits` those of each model. `profiles` are the
    records of operators, `causes` those of removed causes, `searches` those in
    `artifacts/{model}/`, `training` those of measured trainings, `activations` those of models
    paired with a reference, `races` those of the races per model and device, `families` those of
    models timed with the models that start from them, `studies` those of all studies, `caches`
    those of calibrations, `prepared` what holds the seconds of jobs before builds.
    """

    engines: Paths
    latencies: Paths
    accuracies: Paths
    logits: Paths = ()
    checkpoints: Paths
    splits: Paths
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


# model and variant
Name = tuple[str, str]
# the result of a variant with its records
Run = tuple[Result, LatencyRecord, AccuracyRecord]


class Machine(NamedTuple):
    """What a record says of the machine on which it was made."""

    host: dict[str, Any]
    libraries: dict[str, str | None]
    status: str

    @classmethod
    def of(cls, record: Record) -> "Machine":
        """Return that of a record."""
        return cls(record.host, record.libraries, record.status)


def add_hosts(found: dict[str, Host], machines: Iterable[Machine]) -> None:
    """Add the hosts of more records, with their libraries and GPUs.

    A failure of a named host does not describe it: where the scheduler ended the job, another
    machine wrote the record.
    """
    for host, libraries, status in machines:
        key = host_key(host)
        if key not in found and "name" in host and status != "ok":
            continue
        if key not in found:
            fields = {name: host[name] for name in Host.__struct_fields__ if name in host}
            found[key] = msgspec.convert({**fields, "libraries": {}, "gpu_uuids": []}, Host)
        known = found[key]
        uuids = {*known.gpu_uuids, host.get("gpu_uuid")}
        found[key] = replace(
            known,
            libraries=known.libraries | libraries,
            gpu_uuids=sorted(uuid for uuid in uuids if uuid),
        )


class RunFiles(NamedTuple):
    """Manifest of an engine, and its two records."""

    engine: Path
    latency: Path
    accuracy: Path


class ModelFiles(NamedTuple):
    """The files of the variants of a model, and what to keep of them.

    `predictions` and `logits` say whether models are compared with each other.
    """

    files: Sequence[RunFiles]
    splits: SplitsByModel
    settings: Settings
    predictions: bool
    logits: bool


class ModelRuns(NamedTuple):
    """What the records of the variants of a model say, in their order.

    `judged` are the accuracy records without what `kept` leaves out, `machines` those of the
    records as they follow each other, `engines` the digests of the engines in use.
    """

    results: list[Result]
    judged: dict[Name, AccuracyRecord]
    machines: list[Machine]
    engines: Engines


def read_model(model: ModelFiles) -> ModelRuns:
    """Return what the records of a model say; raises as `require_own` and `require_data` do."""
    reader = ModelReader(model.files, model.splits, model.settings)
    runs = ModelRuns([], {}, [], reader.engines)
    for result, latency, accuracy in map(reader.run, reader.latencies, model.files):
        runs.results.append(result)
        runs.machines.extend(Machine.of(one) for one in (latency, accuracy))
        record = kept(accuracy, model.predictions, model.logits)
        runs.judged[accuracy.model, accuracy.variant] = record
    return runs._replace(machines=distinct(runs.machines))


def distinct(machines: Sequence[Machine]) -> list[Machine]:
    """Return the machines without those that are equal to the one before."""
    before = [None, *machines]
    return [one for last, one in zip(before, machines, strict=False) if one != last]


def kept(record: AccuracyRecord, predictions: bool, logits: bool) -> AccuracyRecord:
    """Return a record without margins, and without what no later comparison needs.

    `predictions` and `logits` say whether models are compared with each other; the logits only of
    engines in float are, see `paired_accuracy.equal_up_to_rounding`.
    """
    less = replace(record, margins=[], predictions=record.predictions if predictions else [])
    if logits and parse(record.variant).precision in ROUNDING:
        less.logits = record.logits
    return less


class ModelReader:
    """Reads the records of the variants of a model, which share baselines and examples."""

    def __init__(
        self, files: Sequence[RunFiles], splits: SplitsByModel, settings: Settings
    ) -> None:
        self.files, self.settings, self.data = files, settings, splits
        self.engines = engines_in_use(one.engine for one in files)
        self.latencies = [self.read(LatencyRecord, one.latency) for one in files]
        self.machine = MachineSpeed(self.latencies)
        self.splits: Mapping[str, Split] = {
            name: evaluation_split(splits[name]["evaluation"])
            for name in dict.fromkeys(one.model for one in self.latencies)
        }
        self.references = self.read_references()

    def read(self, kind: type[Kind], path: Path) -> Kind:
        """Return a record of an engine and data in use; raises as `require_own`, `require_data`."""
        record = kind.read(path)
        require_own(path, record, self.engines)
        if isinstance(record, AccuracyRecord):
            split, digest = self.data[record.model]["evaluation"], self.splits[record.model].sha256
            require_data(path, record, split, digest)
        return record

    def read_references(self) -> dict[Name, tuple[AccuracyRecord, ReferenceLogits]]:
        """Return the accuracy records of baselines, with their logits as comparisons need them."""
        wanted = {self.baseline_of(one) for one in self.latencies}
        found = {}
        for latency, run in zip(self.latencies, self.files, strict=True):
            if (latency.model, latency.variant) in wanted:
                record = self.read(AccuracyRecord, run.accuracy)
                found[record.model, record.variant] = record, ReferenceLogits(record.logits)
        return found

    def baseline_of(self, latency: LatencyRecord) -> Name:
        """Return the baseline of a variant."""
        place = parse(latency.variant).place
        return latency.model, self.settings.baselines[latency.model][place]

    def run(self, latency: LatencyRecord, files: RunFiles) -> Run:
        """Return the result of a variant, compared with its baseline, and its records."""
        own = self.references.get((latency.model, latency.variant))
        accuracy = own[0] if own else self.read(AccuracyRecord, files.accuracy)
        baseline = self.baseline_of(latency)
        reference, logits = self.references.get(baseline, (None, None))
        result = result_entry(
            open_manifest(files.engine, EngineManifest),
            latency,
            accuracy,
            reference,
            host=host_key(latency.host),
            budget=self.settings.budget_points / 100,
            baseline_variant=baseline[1],
            split=self.splits[latency.model],
            machine=self.machine,
            logits=logits,
            accept_disturbed=self.settings.accept_disturbed,
        )
        return result, latency, accuracy


class Runs(NamedTuple):
    """What the records of all variants say, in their order.

    `judged` are the accuracy records without what `kept` leaves out, `engines` the digests of the
    engines in use.
    """

    results: list[Result]
    judged: dict[Name, AccuracyRecord]
    hosts: dict[str, Host]
    engines: dict[Name, str]


def read_runs(
    inputs: Inputs, splits: SplitsByModel, settings: Settings, *, processes: int = 1
) -> Runs:
    """Return the results of all variants, the same from any number of processes.

    Each has the records of one model at a time in memory.
    """
    paths = zip(inputs.engines, inputs.latencies, inputs.accuracies, strict=True)
    files = [RunFiles(*map(Path, run)) for run in paths]
    models: dict[str, list[int]] = {}
    for place, run in enumerate(files):
        models.setdefault(run.latency.parent.name, []).append(place)
    predictions, logits = bool([*inputs.families, *inputs.activations]), bool([*inputs.families])
    tasks = [
        ModelFiles(
            [files[place] for place in places],
            {model: splits[model]},
            settings.of_model(model),
            predictions,
            logits,
        )
        for model, places in models.items()
    ]
    results: dict[int, Result] = {}
    runs = Runs([], {}, {}, {})
    read = spread(read_model, tasks, processes=processes)
    for places, own in zip(models.values(), read, strict=True):
        results |= zip(places, own.results, strict=True)
        runs.judged.update(own.judged)
        runs.engines.update(own.engines)
        add_hosts(runs.hosts, own.machines)
    return runs._replace(results=[results[place] for place in range(len(files))])
