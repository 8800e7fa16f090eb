"""Models of summary.json: splits, weights, how many texts were cut, searches of int8-auto."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from msgspec.structs import replace

from tightrope.artifacts.content import read_artifact
from tightrope.artifacts.descent import require_model
from tightrope.artifacts.failures import failure_of
from tightrope.artifacts.files import require_type, sha256
from tightrope.artifacts.manifest import open_manifest, read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, SplitManifest
from tightrope.inputs.encode import read_split, require_split
from tightrope.model.config import activation_of
from tightrope.records.accuracy import AccuracyRecord
from tightrope.summary.accuracy import KEYS, Split
from tightrope.summary.result_types import (
    Entry,
    Model,
    OperatorSensitivity,
    Result,
    Search,
    Sensitivity,
    Trial,
    Truncation,
)
from tightrope.variants import AUTO, parse

# records by (model, file stem)
Records = Mapping[tuple[str, str], dict[str, Any]]


def made_records(paths: Iterable[Path | str], kind: Any) -> Records:
    """Read files `artifacts/{model}/{kind}/{name}.json`, without recorded failures."""
    found = {path: read_artifact(path) for path in paths}
    made = {path: one for path, one in found.items() if failure_of(one) is None}
    for path, one in made.items():
        require_type(path, one, kind)
    return {key_of(path): one for path, one in made.items()}


def key_of(path: Path | str) -> tuple[str, str]:
    """Return model and name of `artifacts/{model}/{kind}/{name}.json`."""
    return Path(path).parent.parent.name, Path(path).stem


def with_search(result: Result, searches: Records) -> Result:
    """Return a result with its `search`, None if missing; named by scheme and calibration."""
    model, calibration = result.model, result.calibration
    searched = searches.items() if result.precision == AUTO else ()
    found = [
        record
        for (owner, name), record in searched
        if (owner, name.partition("-")[2]) == (model, calibration)
    ]
    return replace(result, search=search_entry(found[0])) if found else result


def search_entry(record: Mapping[str, Any]) -> Search:
    """Return `search` of an int8-auto result; a trial has the number of operators left in float."""
    trials = [
        Trial(**picked(Trial, {**one, "in_float": len(one["in_float"])}))
        for one in record["trials"]
    ]
    return Search(**{**picked(Search, record), "trials": trials})


def picked(kind: type[Entry], source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry from a mapping that has all of them."""
    return {name: source[name] for name in kind.__struct_fields__}


def sensitivity_entries(model: str, searches: Records) -> dict[str, Sensitivity]:
    """Return a model's operator sensitivities by scheme and calibration, highest KL first.

    `searches` that needed none are left out.
    """
    measured = {
        name: record["sensitivity"]
        for (owner, name), record in searches.items()
        if owner == model and record["sensitivity"]
    }
    return {
        name: Sensitivity(
            one["samples"],
            sorted(
                (
                    OperatorSensitivity(**picked(OperatorSensitivity, {"operator": name, **fields}))
                    for name, fields in one["operators"].items()
                ),
                key=lambda operator: -operator.kl,
            ),
        )
        for name, one in measured.items()
    }


# manifests of splits by model and split
SplitsByModel = dict[str, dict[str, Path]]
Paths = Iterable[Path | str]
Judged = Mapping[tuple[str, str], AccuracyRecord]


def by_model(splits: Iterable[Path | str]) -> SplitsByModel:
    """Return the manifests artifacts/{model}/splits/{split}.json by model and split."""
    found: SplitsByModel = {}
    for path in map(Path, splits):
        found.setdefault(path.parent.parent.name, {})[path.stem] = path
    return found


def evaluation_split(manifest: Path | str) -> Split:
    """Read the evaluation split, without fields that the report does not use."""
    texts = [example.get("text", example.get("name")) for example in read_split(manifest)]
    return Split(sha256(manifest), texts, open_manifest(manifest, SplitManifest)["labels"])


def data_entry(splits: dict[str, Path]) -> dict[str, str | int | None]:
    """Return the source of a model's data and the size of each split that is not empty."""
    manifests = {split: open_manifest(path, SplitManifest) for split, path in splits.items()}
    for split, path in splits.items():
        require_split(path, manifests[split])
    sizes = {f"{split}_samples": one["samples"] for split, one in manifests.items()}
    filled: dict[str, str | int | None] = {name: size for name, size in sizes.items() if size}
    return {"source": manifests["evaluation"]["source"], **filled}


def model_entry(
    checkpoint: Path | str,
    splits: SplitsByModel,
    results: Mapping[str, Sequence[Result]],
    baselines: Mapping[str, Mapping[str, str]],
    searches: Records,
) -> tuple[str, Model]:
    """Return name and entry of a model from the manifests of its checkpoint and splits.

    Raises ArtifactError for the checkpoint of another model.
    """
    made, name = read_manifest(checkpoint, CheckpointManifest), Path(checkpoint).parent.parent.name
    require_model(checkpoint, name)
    data = open_manifest(splits[name]["evaluation"], SplitManifest)
    weights = made["files"].get("model.safetensors") or made["files"]["model.onnx"]
    own = [one for one in results.get(name, ()) if one.status != "unavailable"]
    places = dict.fromkeys(parse(one.variant).place for one in own)
    return name, Model(
        task=made["task"],
        activation=activation_of(Path(checkpoint).with_name("config.json")),
        parameters=made["parameters"],
        reference=made.get("reference"),
        matched=made.get("matched"),
        checkpoint_sha256=weights["sha256"],
        labels=data["labels"],
        data=data_entry(splits[name]),
        left_out=data.get("left_out") or {},
        truncation={},
        baselines={place: baselines[name][place] for place in places},
        sensitivity=sensitivity_entries(name, searches),
        chance=None,
        thumbnails={},
    )


class Encoded(TypedDict, total=False):
    """What a calibration cache or a training says of the texts that it encoded."""

    samples: int | None
    truncation: Truncation | None


def with_truncations(
    models: Mapping[str, Model], judged: Judged, caches: Paths, checkpoints: Paths
) -> dict[str, Model]:
    """Return the models with the truncation of each split that was encoded; empty for images.

    `judged` are the accuracy records by (model, variant), `caches` those of calibrations (the one
    with the most samples counts), `checkpoints` the manifests of trained or untrained models.
    """
    found: dict[str, dict[str, Any]] = {name: {} for name in models}
    for (model, _), record in judged.items():
        # all variants of a model encode the same texts
        found[model]["evaluation"] = found[model].get("evaluation") or record.truncation
    cached = made_records(caches, Encoded).items()
    for (name, _), cache in sorted(cached, key=lambda item: item[1].get("samples") or 0):
        found[name]["calibration"] = cache.get("truncation") or found[name].get("calibration")
    for path in checkpoints:
        training = read_manifest(path, CheckpointManifest)["training"] or {}
        require_type(path, training, Encoded)
        found[Path(path).parent.parent.name]["train"] = training.get("truncation")
    return {name: replace(model, truncation=known(found[name])) for name, model in models.items()}


def known(splits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the splits whose truncation is known, in the order of `KEYS`."""
    return {split: splits[split] for split in KEYS if splits.get(split)}
