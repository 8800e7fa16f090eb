"""Entries of the models in summary.json, from the manifests of their checkpoints and splits."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from tightrope.artifacts.descent import require_model
from tightrope.artifacts.manifest import open_manifest, read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, File, SplitManifest
from tightrope.model.config import activation_of
from tightrope.summary.int8 import Records, sensitivity_entries
from tightrope.summary.model_types import Model
from tightrope.summary.result_types import Result
from tightrope.summary.splits import SplitsByModel, data_entry
from tightrope.variants import parse


def model_entry(
    checkpoint: Path | str,
    splits: SplitsByModel,
    results: Iterable[Result],
    baselines: Mapping[str, Mapping[str, str]],
    searches: Records,
) -> tuple[str, Model]:
    """Return name and entry of a model from the manifests of its checkpoint and splits.

    Raises ArtifactError for the checkpoint of another model.
    """
    made, name = read_manifest(checkpoint, CheckpointManifest), Path(checkpoint).parent.parent.name
    require_model(checkpoint, name)
    data = open_manifest(splits[name]["evaluation"], SplitManifest)
    own = [result for result in results if result["model"] == name]
    places = dict.fromkeys(
        parse(one["variant"]).place for one in own if one["status"] != "unavailable"
    )
    return name, {
        "task": made["task"],
        "activation": activation_of(Path(checkpoint).with_name("config.json")),
        "parameters": made["parameters"],
        "checkpoint_sha256": weights_of(made)["sha256"],
        "labels": data["labels"],
        "data": data_entry(splits[name]),
        "truncation": {},
        "baselines": {place: baselines[name][place] for place in places},
        "sensitivity": sensitivity_entries(name, searches),
        "chance": None,
        "thumbnails": {},
    }


def weights_of(manifest: CheckpointManifest) -> File:
    """Return the manifest entry of a checkpoint's weights file."""
    return manifest["files"].get("model.safetensors") or manifest["files"]["model.onnx"]
