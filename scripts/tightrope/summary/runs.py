"""The results of all models, each read in a process of its own, and their hosts."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.jobs.spread import spread
from tightrope.machine.host import host_key
from tightrope.records.accuracy import ROUNDING, AccuracyRecord
from tightrope.records.latency import LatencyRecord, MachineSpeed
from tightrope.records.record import Record
from tightrope.summary.accuracy import ReferenceLogits, Split
from tightrope.summary.inputs import Inputs, Settings
from tightrope.summary.models import SplitsByModel, evaluation_split
from tightrope.summary.own_records import Engines, Kind, engines_in_use, require_data, require_own
from tightrope.summary.result_types import Host, Result
from tightrope.summary.results import result_entry
from tightrope.variants import parse

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
            found[key] = msgspec.convert({**host, "libraries": {}, "gpu_uuids": []}, Host)
        entry = found[key]
        entry["libraries"] |= libraries
        uuids = {*entry["gpu_uuids"], host.get("gpu_uuid")}
        entry["gpu_uuids"] = sorted(uuid for uuid in uuids if uuid)


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
