"""What a summary is written from; the results of all models, and their hosts.

Each model is read in a process of its own.
"""

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

import tightrope
from tightrope.artifacts.files import read_bytes, sha256
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.artifacts.provenance import code_digest
from tightrope.decide.bounds import Goal, PrepareSeconds, Prices
from tightrope.decide.result import Entry, Result, StudyEntry, same
from tightrope.engine_table import ENGINES
from tightrope.errors import ArtifactError, in_one_line
from tightrope.jobs.child import spread
from tightrope.machine.host import host_key
from tightrope.records.accuracy import ROUNDING, AccuracyRecord
from tightrope.records.family import model_and_variant
from tightrope.records.latency import LatencyRecord, MachineSpeed
from tightrope.records.race import RaceRecord
from tightrope.records.record import TRAINING, Record, require_engine
from tightrope.studies.study import Study, StudyRecord
from tightrope.studies.table import STUDIES
from tightrope.summary.accuracy import ReferenceLogits, accuracy_entry
from tightrope.summary.models import SplitsByModel, evaluation_split
from tightrope.summary.results import latency_entry, measured_entry, parts_of
from tightrope.variants import parse

Paths = Iterable[Path | str]
# positions in the list of files, by model and variant
Prepared = Mapping[str, Mapping[str, Sequence[int]]]
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


class Host(Entry):
    """A machine on which something was measured."""

    cpu: str
    isa: list[str]
    """The processor, and its instruction sets that matter here."""
    cores: int
    """Physical ones that it may use."""
    python: str
    libraries: dict[str, str | None]
    """Versions of Python and of the libraries that were used on it."""
    memory_bytes: int | None = None
    """Of the machine."""
    gpu: str | None = None
    gpu_uuids: list[str] = []
    """The kind of GPU, and which cards of that kind, or MIG instances, were measured."""
    driver: str | None = None
    """Of the GPU."""
    name: str | None = None
    """Of its kind of node, where the configuration gives one."""


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """Files of a run: manifests, and records by what they are of.

    `engines`, `latencies` and `accuracies` are in the same order, those of a model together,
    `logits` are read with the latter; `checkpoints` has one per model, `splits` those of each
    model, `searches` those in `artifacts/{model}/`. `activations` are latencies of models paired
    with a reference, `caches` those of calibrations, `prepared` hold the seconds of jobs before
    builds.
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


class Settings(msgspec.Struct, frozen=True, kw_only=True):
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
    code: Mapping[str, str] = {}
    failed: Sequence[tuple[str, str, str]] = ()
    references: Mapping[str, str] = {}
    accept_disturbed: bool = False
    goal: Goal | None = None
    prices: Prices = {}
    prepared: Prepared = {}

    @property
    def budget(self) -> float:
        """How much accuracy a variant may lose, a fraction."""
        return self.budget_points / 100


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


class Machine(NamedTuple):
    """What a record says of the machine on which it was made."""

    host: dict[str, Any]
    libraries: dict[str, str | None]
    status: str

    @classmethod
    def of(cls, record: Record) -> "Machine":
        """Return that of a record."""
        return cls(record.host, record.libraries, record.status)


def hosts_of(machines: Iterable[Machine]) -> dict[str, Host]:
    """Return the hosts of records, with their libraries and GPUs.

    A failure of a named host does not describe it: where the scheduler ended the job, another
    machine wrote the record.
    """
    found: dict[str, Host] = {}
    for host, libraries, status in machines:
        key = host_key(host)
        if key not in found and "name" in host and status != "ok":
            continue
        if key not in found:
            fields = {name: host[name] for name in Host.__struct_fields__ if name in host}
            found[key] = msgspec.convert({**fields, "libraries": {}, "gpu_uuids": []}, Host)
        known, uuid = found[key], host.get("gpu_uuid")
        known.libraries |= libraries
        known.gpu_uuids = sorted({*known.gpu_uuids, *([uuid] if uuid else [])})
    return found


Kind = TypeVar("Kind", bound=Record)
Raced = TypeVar("Raced", bound=RaceRecord)
# SHA-256 of each engine.json in use, by model and variant
Engines = dict[tuple[str, str], str]


def engines_in_use(paths: Iterable[Path | str]) -> Engines:
    """Return the digests of `artifacts/{model}/engines/{variant}/engine.json`."""
    return {(Path(one).parents[2].name, Path(one).parent.name): sha256(one) for one in paths}


def read_own(path: Path | str, read: Callable[[Path | str], Kind], engines: Engines) -> Kind:
    """Return the record `reports/{model}/{variant}.{kind}.json` of an engine in use.

    Raises ArtifactError for a record of another model, variant or engine, and as `read`.
    """
    record, model, variant = read(path), Path(path).parent.name, Path(path).name.rsplit(".", 2)[0]
    if record.variant == TRAINING:
        variant = TRAINING
    if (record.model, record.variant) != (model, variant):
        raise ArtifactError(
            f"{path}: the record of {record.variant} of model {record.model}, not of {variant} of "
            f"{model}; delete it and run again"
        )
    require_engine(path, record.engine_sha256, engines.get((model, variant)))
    return record


def read_own_race(path: Path | str, kind: type[Raced], engines: Engines) -> Raced:
    """Return a record of engines in use that ran in the same rounds; raises as `read_own`.

    Those of a family are named by model and variant, those of a race by variant.
    """
    record, model = kind.read(path), Path(path).parent.name
    if record.model != model:
        raise ArtifactError(
            f"{path}: the record of model {record.model}, not of {model}; delete it and run again"
        )
    for name, digest in record.engines_sha256.items():
        known = model_and_variant(name) if "/" in name else (record.model, name)
        if known not in engines:
            raise ArtifactError(
                f"{path}: raced {name}, which is configured no more; delete it and run again"
            )
        require_engine(path, digest, engines[known])
    return record


def read_studies(paths: Iterable[Path | str], in_use: Engines) -> dict[str, list[StudyRecord]]:
    """Return the records `reports/{model}/{variant}.{study}.json`, by study.

    Raises ArtifactError as `read_own` does.
    """
    found: dict[str, list[StudyRecord]] = {name: [] for name in STUDIES}
    for path in paths:
        name = Path(path).name.split(".")[-2]
        found[name].append(read_own(path, STUDIES[name].read, in_use))
    return found


def study_entry(study: Study, record: StudyRecord, *, accept_disturbed: bool = False) -> StudyEntry:
    """Return the entry of a record; a failed one has no rows.

    A part of which other load left too little has no numbers; with `accept_disturbed` it has, and
    is `provisional`.
    """
    rows = study.rows(record, accept_disturbed) if record.status == "ok" else []
    return StudyEntry(
        **measured_entry(record),
        **same(record, "shape", "threads", "spent_s"),
        words=[*study.words(rows, record)] if rows else [],
        rows=msgspec.to_builtins(rows),
    )


class ModelFiles(NamedTuple):
    """The files of the variants of a model, and what their results depend on besides.

    `files` are the manifest of each engine, its latency and its accuracy record; `split` is the
    manifest of its evaluation split, `compared` says whether models are compared with each other.
    """

    files: Sequence[tuple[Path | str, Path | str, Path | str]]
    split: Path
    settings: Settings
    compared: bool


class Runs(NamedTuple):
    """What the records of variants say, in their order.

    `judged` are the accuracy records without what `kept` leaves out, `machines` those of the
    records as they follow each other, `engines` the digests of the engines in use.
    """

    results: list[Result]
    judged: dict[Name, AccuracyRecord]
    machines: list[Machine]
    engines: dict[Name, str]


def read_model(model: ModelFiles) -> Runs:
    """Return what the records of a model say.

    Raises ArtifactError as `read_own`, and for predictions on other data than the split.
    """
    settings, accept = model.settings, model.settings.accept_disturbed
    in_use = engines_in_use(engine for engine, *_ in model.files)
    latencies = [read_own(path, LatencyRecord.read, in_use) for _, path, _ in model.files]
    machine, split = MachineSpeed(latencies), evaluation_split(model.split)

    def accuracy_in(path: Path | str) -> AccuracyRecord:
        record = read_own(path, AccuracyRecord.read, in_use)
        if record.data_sha256 != split.sha256:
            raise ArtifactError(
                f"{path}: predictions on other data than {model.split}; delete it and run again"
            )
        return record

    baselines = [settings.baselines[one.model][parse(one.variant).place] for one in latencies]
    references = {
        latency.variant: accuracy_in(path)
        for latency, (*_, path) in zip(latencies, model.files, strict=True)
        if latency.variant in baselines
    }
    logits = {name: ReferenceLogits(record.logits) for name, record in references.items()}
    runs = Runs([], {}, [], in_use)
    for latency, files, baseline in zip(latencies, model.files, baselines, strict=True):
        accuracy = references.get(latency.variant) or accuracy_in(files[2])
        told = latency if latency.status != "ok" or accuracy.status == "ok" else accuracy
        engine = open_manifest(files[0], EngineManifest)
        beside = references.get(baseline), settings.budget, split, logits.get(baseline)
        result = Result(
            **same(latency, "model", "engine_sha256", "measured", "threads", "baseline_failed"),
            **same(latency, "load_s", "first_call_s", "peak_rss_bytes"),
            **same(told, "status", "reason"),
            **parts_of(latency.variant),
            baseline=baseline,
            host=host_key(latency.host),
            size_bytes=sum(file["size_bytes"] for file in engine["files"].values()),
            build_s=engine["build_s"],
            build_peak_rss_bytes=engine.get("build_peak_rss_bytes"),
            executed=engine.get("executed"),
            options=engine.get("options"),
            accuracy=accuracy_entry(accuracy, *beside),
            # as if the variant had not raced
            latency=[
                latency_entry(latency, place, machine.spread(latency, place), accept)
                for place in range(len(latency.shapes))
            ],
        )
        runs.results.append(result)
        runs.machines.extend(Machine.of(one) for one in (latency, accuracy))
        runs.judged[accuracy.model, accuracy.variant] = kept(accuracy, model.compared)
    return runs._replace(machines=[one for one, _ in groupby(runs.machines)])


def kept(record: AccuracyRecord, compared: bool) -> AccuracyRecord:
    """Return a record without margins, and without what no later comparison needs.

    `compared` says whether models are compared with each other; the logits only of engines in
    float are, see `equal_up_to_rounding`.
    """
    less = replace(record, margins=[], predictions=record.predictions if compared else [])
    if compared and parse(record.variant).precision in ROUNDING:
        less.logits = record.logits
    return less


def read_runs(
    inputs: Inputs, splits: SplitsByModel, settings: Settings, *, processes: int = 1
) -> Runs:
    """Return what the records of all variants say, the same from any number of processes.

    Each has the records of one model at a time in memory.
    """
    paths = zip(inputs.engines, inputs.latencies, inputs.accuracies, strict=True)
    by_model = groupby(paths, lambda files: Path(files[1]).parent.name)
    compared = bool([*inputs.families, *inputs.activations])
    tasks = [
        ModelFiles([*files], splits[model]["evaluation"], settings, compared)
        for model, files in by_model
    ]
    runs = Runs([], {}, [], {})
    for own in spread(read_model, tasks, processes=processes):
        runs.results.extend(own.results)
        runs.judged.update(own.judged)
        runs.machines.extend(own.machines)
        runs.engines.update(own.engines)
    return runs


def prepare_seconds(prepared: Prepared, files: Sequence[str]) -> PrepareSeconds:
    """Return the seconds of the jobs before the build of each variant, see `PrepareSeconds`.

    `files` hold them. Jobs that several variants share count for each of them.
    """
    seconds = [job_seconds(path) for path in files]
    found: dict[tuple[str, str], float | None] = {}
    for model, variants in prepared.items():
        for variant, places in variants.items():
            known = [one for place in places if (one := seconds[place]) is not None]
            found[model, variant] = math.fsum(known) if len(known) == len(places) else None
    return found


def job_seconds(path: str) -> float | None:
    """Return the seconds in the manifest of an engine or in a benchmark of Snakemake.

    None where Snakemake measured none, as of a job of an instant.
    """
    if Path(path).name == "engine.json":
        return open_manifest(path, EngineManifest)["build_s"]
    try:
        rows = csv.DictReader(read_bytes(path).decode().splitlines(), delimiter="\t")
        seconds = float(next(rows)["s"])
    except (KeyError, StopIteration, TypeError, ValueError, csv.Error) as error:
        raise ArtifactError(
            f"{path}: no benchmark of Snakemake ({in_one_line(error)}); delete it and run again"
        ) from error
    return seconds if math.isfinite(seconds) else None
