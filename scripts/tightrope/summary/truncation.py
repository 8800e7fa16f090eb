"""How many texts of each split were cut, from the files of the steps that encoded them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from tightrope.artifacts.files import require_type
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.records.accuracy import AccuracyRecord
from tightrope.summary.int8 import made_records
from tightrope.summary.model_types import Model, Truncation
from tightrope.summary.truncation_words import KEYS

Paths = Iterable[Path | str]
Judged = Mapping[tuple[str, str], AccuracyRecord]


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
    for (name, _), cache in sorted(made_records(caches, Encoded).items(), key=samples_of):
        found[name]["calibration"] = cache.get("truncation") or found[name].get("calibration")
    for path in checkpoints:
        training = read_manifest(path, CheckpointManifest)["training"] or {}
        require_type(path, training, Encoded)
        found[Path(path).parent.parent.name]["train"] = training.get("truncation")
    return {name: {**model, "truncation": known(found[name])} for name, model in models.items()}


def samples_of(item: tuple[Any, Mapping[str, Any]]) -> int:
    """Return the number of samples of a calibration cache."""
    return int(item[1].get("samples") or 0)


def known(splits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the splits whose truncation is known, in the order of `KEYS`."""
    return {split: splits[split] for split in KEYS if splits.get(split)}
