"""Write reports/summary.json and summary.csv from all records of a run."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tightrope import __version__
from tightrope.artifacts.files import read_json, write_bytes
from tightrope.artifacts.manifest import read_manifest
from tightrope.inputs.encode import read_split
from tightrope.machine.host import fingerprint
from tightrope.model.config import activation_of
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.machine_speed import MachineSpeed
from tightrope.records.race import RaceRecord
from tightrope.records.record import Record
from tightrope.records.traffic import TrafficRecord
from tightrope.records.training import TrainingRecord
from tightrope.summary.accuracy import Split
from tightrope.summary.activations import activation_entries
from tightrope.summary.document import Summary, write_summary
from tightrope.summary.int8 import (
    Records,
    made_records,
    read_records,
    sensitivity_entries,
    with_int8,
)
from tightrope.summary.quantize_or_not import quantizations
from tightrope.summary.races import race_entries
from tightrope.summary.recommend import recommendations
from tightrope.summary.results import result_entry, unavailable_entry
from tightrope.summary.speed_scale import with_races
from tightrope.summary.traffic import traffic_entry
from tightrope.summary.training import training_entries
from tightrope.variants import parse

# fields of a result and of its accuracy that are not CSV columns
NESTED = ("latency", "executed", "options", "audit", "search")
LISTED = ("flipped",)
Paths = Iterable[Path | str]


def summarize(
    *,
    engines: Paths,
    latencies: Paths,
    accuracies: Paths,
    traffic: Paths,
    audits: Paths,
    sensitivities: Paths,
    searches: Paths,
    training: Paths,
    checkpoints: Paths,
    data: Paths,
    json_target: Path | str,
    csv_target: Path | str,
    activations: Paths = (),
    references: Mapping[str, str] = MappingProxyType({}),
    races: Paths = (),
    unavailable: list[tuple[str, str, str]],
    baselines: dict[str, dict[str, str]],
    budget_points: float,
    accept_disturbed: bool = False,
) -> None:
    """Write the summary of all records; docs/summary-json.md lists its fields.

    `engines`, `latencies` and `accuracies` are in the same order, as are `checkpoints` and `data`,
    one of each per model. `traffic` are the records of measurements under traffic, `audits`,
    `sensitivities` and `searches` those in `artifacts/{model}/`, `training` those of measured
    trainings, `activations` those of models paired with the reference that `references` names,
    `races` those of the races per model and device. `unavailable` holds (model, variant, reason),
    `baselines` the baseline variant by model and device. For `accept_disturbed` see
    `results.latency_entry`.
    """
    runs = [
        (read_json(engine), LatencyRecord.read(latency), AccuracyRecord.read(accuracy))
        for engine, latency, accuracy in zip(engines, latencies, accuracies, strict=True)
    ]
    loads = [TrafficRecord.read(path) for path in traffic]
    trainings = [TrainingRecord.read(path) for path in training]
    judged = {(record.model, record.variant): record for _, _, record in runs}
    splits = {Path(path).parent.parent.name: evaluation_split(path) for path in data}
    machine = MachineSpeed(latency for _, latency, _ in runs)
    judging = Judging(judged, baselines, budget_points / 100, splits, machine, accept_disturbed)
    results = [entry_of(*run, judging) for run in runs]
    sizes = {(one["model"], one["variant"]): one["size_bytes"] for one in results}
    raced = race_entries(map(RaceRecord.read, races), sizes, accept_disturbed=accept_disturbed)
    results = with_races(results, raced)
    results += [unavailable_entry(*one) for one in unavailable]
    found = read_records(audits), made_records(searches)
    results = [with_int8(result, *found) for result in results]
    sensitive = made_records(sensitivities)
    models = [
        model_entry(checkpoint, source, results, baselines, sensitive)
        for checkpoint, source in zip(checkpoints, data, strict=True)
    ]
    document: Summary = {
        "schema": 2,
        "tightrope": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "accuracy_budget_points": budget_points,
        "hosts": hosts([record for run in runs for record in run[1:]] + loads + trainings),
        "models": dict(models),
        "results": results,
        "recommendations": recommendations(results, raced),
        "races": list(raced.values()),
        "quantization": quantizations(results, raced),
        "traffic": [
            traffic_entry(record, host=fingerprint(record.host), accept_disturbed=accept_disturbed)
            for record in loads
        ],
        "training": training_entries(trainings, accept_disturbed=accept_disturbed),
        "activations": activation_entries(
            [LatencyRecord.read(path) for path in activations],
            judged,
            references=references,
            baselines=baselines,
            budget=budget_points / 100,
        ),
    }
    write_summary(json_target, document)
    write_csv(results, csv_target)


class Judging(NamedTuple):
    """Context for evaluating the result of each variant; `budget` is a fraction."""

    judged: Mapping[tuple[str, str], AccuracyRecord]
    baselines: Mapping[str, Mapping[str, str]]
    budget: float
    splits: Mapping[str, Split]
    machine: MachineSpeed
    accept_disturbed: bool


def entry_of(
    engine: dict[str, Any], latency: LatencyRecord, accuracy: AccuracyRecord, judging: Judging
) -> dict[str, Any]:
    """Return the result of a variant, compared with its baseline."""
    rival = judging.baselines[latency.model][parse(latency.variant).device]
    return result_entry(
        engine,
        latency,
        accuracy,
        judging.judged.get((latency.model, rival)),
        host=fingerprint(latency.host),
        budget=judging.budget,
        rival=rival,
        split=judging.splits[latency.model],
        machine=judging.machine,
        accept_disturbed=judging.accept_disturbed,
    )


def evaluation_split(data: Path | str) -> Split:
    """Read the evaluation split of a data manifest, without fields that the report does not use."""
    manifest = read_json(data)
    file = manifest["splits"]["evaluation"]["file"]
    texts = [example.get("text", example.get("name")) for example in read_split(data, "evaluation")]
    return Split(manifest["files"][file]["sha256"], texts, manifest["labels"])


def hosts(records: Iterable[Record]) -> dict[str, Any]:
    """Return each host of the records by fingerprint, with the libraries used on it."""
    found: dict[str, Any] = {}
    for record in records:
        host = found.setdefault(fingerprint(record.host), {**record.host, "libraries": {}})
        host["libraries"] |= record.libraries
    return found


def model_entry(
    checkpoint: Path | str,
    data: Path | str,
    results: list[dict[str, Any]],
    baselines: dict[str, dict[str, str]],
    sensitivities: Records,
) -> tuple[str, dict[str, Any]]:
    """Return name and entry of a model from its checkpoint and data manifests."""
    made, source = read_manifest(checkpoint), read_json(data)
    name = Path(checkpoint).parent.parent.name
    own = [result for result in results if result["model"] == name]
    devices = dict.fromkeys(one["device"] for one in own if one["status"] != "unavailable")
    return name, {
        "task": made["task"],
        "activation": activation_of(Path(checkpoint).with_name("config.json")),
        "parameters": made["parameters"],
        "checkpoint_sha256": weights_of(made)["sha256"],
        "labels": source["labels"],
        "data": {
            "source": source["source"],
            **{f"{split}_samples": part["samples"] for split, part in source["splits"].items()},
        },
        "baselines": {device: baselines[name][device] for device in devices},
        "sensitivity": sensitivity_entries(name, sensitivities),
    }


def weights_of(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest entry of a checkpoint's weights file."""
    return manifest["files"].get("model.safetensors") or manifest["files"]["model.onnx"]


def write_csv(results: list[dict[str, Any]], target: Path | str) -> None:
    """Write a row per result and shape, with columns named by dotted JSON path.

    The reasons for noise are joined into one text.
    """
    import pandas

    rows = []
    for result in results:
        flat = without(result, NESTED)
        if result["accuracy"]:
            flat["accuracy"] = without(result["accuracy"], LISTED)
        for shape in result["latency"] or [{}]:
            row = {**flat, **{f"latency.{key}": value for key, value in shape.items()}}
            if shape:
                row["latency.noise"] = "; ".join(shape["noise"])
            rows.append(row)
    frame = pandas.json_normalize(rows).convert_dtypes()
    write_bytes(target, frame.to_csv(index=False).encode())


def without(entry: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return `entry` without the fields in `names`."""
    return {key: value for key, value in entry.items() if key not in names}
