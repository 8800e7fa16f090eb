"""Models of summary.json: splits, weights, how many texts were cut, searches of int8-auto."""

import base64
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, TypedDict

from msgspec.structs import replace

from tightrope.artifacts.files import require_type, sha256
from tightrope.artifacts.manifest import open_manifest, parent_of, read_manifest, require_model
from tightrope.artifacts.manifest_types import CheckpointManifest, SplitManifest
from tightrope.decide.result import Entry, Result
from tightrope.errors import TightropeError
from tightrope.inputs.encode import Example, read_split, require_split
from tightrope.model.config import activation_of
from tightrope.records.accuracy import AccuracyRecord
from tightrope.signature import IMAGE
from tightrope.summary.accuracy import (
    Records,
    Sensitivity,
    Split,
    search_entry,
    sensitivity_entries,
)
from tightrope.variants import AUTO, parse

# splits, and the settings at whose number of tokens their texts are cut
KEYS = {"evaluation": "max_sequence", "calibration": "max_sequence", "train": "train.sequence"}
# fields of a checkpoint's manifest with a change, by the key of the configuration
CHANGES = {name: name for name in ("prune", "activation", "distill", "qat")} | {"train": "recipe"}
# pictures of images that are answered otherwise: how many a model has, and how they are made
MOST = 40
SIDE = 72  # pixels: noise of this size is 6 kB, a photograph 2 or 3
QUALITY = 75
# manifests of checkpoints by model
Checkpoints = Mapping[str, CheckpointManifest]


class Truncation(Entry):
    """How many texts of a split were cut."""

    texts: int
    truncated: int
    """Texts that were encoded, and those of them that were cut."""
    max_sequence: int
    """Tokens at which they are cut; of `train` the recipe's `train.sequence`."""


class Model(Entry):
    """A model with its data."""

    task: str
    """`text` or `image`."""
    activation: str | None
    """As its config.json names it, None without."""
    parameters: int
    """Number of weights."""
    reference: int | None
    """For how many texts it was compared with what was brought."""
    matched: str | None
    """How its outputs have got their labels."""
    checkpoint_sha256: str
    """Of its weights."""
    labels: list[str] | None
    """Names of the classes."""
    data: dict[str, str | int | None]
    """The `source`, and the samples of each split that has any: `train_samples`."""
    left_out: dict[str, dict[str, int]]
    """For each part of the source (`train` and `evaluation`, or `pool`) its `rows`, and how many of
    them are `empty`, `equal` to another, `contradictory` (equal with two labels) or `in_evaluation`
    too; the rest is used."""
    truncation: dict[str, Truncation]
    """By split whose texts were encoded: `evaluation`, `calibration`, `train`. Empty for images."""
    baselines: dict[str, str]
    """The variant by device; with `hosts` by device and host, as `cpu@genoa`."""
    chance: float | None
    """Accuracy of always giving the most frequent label of the evaluation split, None without
    labels."""
    thumbnails: dict[str, str]
    """Data URIs of images with changed answers, at most 40, by their index in the evaluation
    split."""
    sensitivity: dict[str, Sensitivity]
    """By scheme and calibration (`u8s8-minmax-512`) for which `int8-auto` needed it, because
    neither plain int8 nor SmoothQuant kept the budget."""


class FamilyMember(Entry):
    """A model of a family."""

    model: str
    parent: str | None
    """The model that it starts from, None for the root."""
    changes: dict[str, Any]
    """`prune`, `activation`, `distill`, `qat`, `train`, each as in its checkpoint.json, if
    there."""
    parameters: int
    """Number of weights."""
    reason: str | None
    """Why no engine of it was timed, else None."""


def with_search(result: Result, searches: Records) -> Result:
    """Return a result with its `search`, None if missing; named by scheme and calibration."""
    for (model, name), record in searches.items() if result.precision == AUTO else ():
        if (model, name.partition("-")[2]) == (result.model, result.calibration):
            return replace(result, search=search_entry(record))
    return result


# manifests of splits by model and split
SplitsByModel = dict[str, dict[str, Path]]
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


def data_entry(splits: Mapping[str, Path]) -> dict[str, str | int | None]:
    """Return the source of a model's data and the size of each split that is not empty."""
    manifests = {split: open_manifest(path, SplitManifest) for split, path in splits.items()}
    for split, path in splits.items():
        require_split(path, manifests[split])
    sizes = {f"{split}_samples": one["samples"] for split, one in manifests.items()}
    filled: dict[str, str | int | None] = {name: size for name, size in sizes.items() if size}
    return {"source": manifests["evaluation"]["source"], **filled}


class Encoded(TypedDict, total=False):
    """What a calibration cache or a training says of the texts that it encoded."""

    samples: int | None
    truncation: Truncation | None


def model_entry(
    checkpoint: Path | str,
    splits: Mapping[str, Path],
    baselines: Mapping[str, str],
    results: Iterable[Result],
    judged: Judged,
    caches: Records,
    searches: Records,
) -> Model:
    """Return the entry of a model from the manifests of its checkpoint and splits.

    `splits` and `baselines` are its own, `results`, accuracy records, `caches` of calibrations and
    `searches` those of all models. Raises ArtifactError for the checkpoint of another model.
    """
    made, name = read_manifest(checkpoint, CheckpointManifest), Path(checkpoint).parents[1].name
    require_model(checkpoint, name)
    data = open_manifest(splits["evaluation"], SplitManifest)
    weights = made["files"].get("model.safetensors") or made["files"]["model.onnx"]
    own = [one for one in results if one.model == name]
    tried = [one.variant for one in own if one.status != "unavailable"]
    places = dict.fromkeys(parse(variant).place for variant in tried)
    records = [record for (model, _), record in judged.items() if model == name]
    cached = [cache for (model, _), cache in caches.items() if model == name]
    cached.sort(key=lambda cache: cache.get("samples") or 0)
    indices = flipped_indices(own) if made["task"] == IMAGE else []
    training = made["training"] or {}
    require_type(checkpoint, training, Encoded)
    encoded = {
        # all variants of a model encode the same texts
        "evaluation": [record.truncation for record in records],
        "calibration": [one.get("truncation") for one in reversed(cached)],
        "train": [training.get("truncation")],
    }
    cut = {split: next(filter(None, found), None) for split, found in encoded.items()}
    return Model(
        task=made["task"],
        activation=activation_of(Path(checkpoint).with_name("config.json")),
        parameters=made["parameters"],
        reference=made.get("reference"),
        matched=made.get("matched"),
        checkpoint_sha256=weights["sha256"],
        labels=data["labels"],
        data=data_entry(splits),
        left_out=data.get("left_out") or {},
        truncation={split: found for split, found in cut.items() if found},
        baselines={place: baselines[place] for place in places},
        sensitivity=sensitivity_entries(name, searches),
        chance=chance_of(records),
        thumbnails=thumbnails(read_split(splits["evaluation"]), indices) if indices else {},
    )


def thumbnails(split: Sequence[Example], indices: Iterable[int]) -> dict[str, str]:
    """Return these images of a split as small JPEGs in data URIs, by index.

    Images that cannot be decoded are left out.
    """
    # imports Pillow, which texts do not need
    from tightrope.inputs.images import decode_rgb

    found = {}
    for index in indices:
        example = split[index]
        if "image" not in example:
            continue
        with suppress(TightropeError):
            picture = decode_rgb(example["image"], name=example["name"])
            picture.thumbnail((SIDE, SIDE))
            stream = io.BytesIO()
            picture.save(stream, "JPEG", quality=QUALITY)
            encoded = base64.b64encode(stream.getvalue()).decode()
            found[str(index)] = f"data:image/jpeg;base64,{encoded}"
    return found


def flipped_indices(results: Iterable[Result]) -> list[int]:
    """Return at most MOST examples to show: the first flipped ones of each result in turn.

    Those of records made on another split are left out.
    """
    lists: list[Sequence[int]] = [
        [example.index for example in accuracy.flipped or () if example.text is not None]
        for result in results
        if (accuracy := result.accuracy)
    ]
    turns = chain.from_iterable(zip_longest(*lists))
    return list(dict.fromkeys(index for index in turns if index is not None))[:MOST]


def poor_baseline(model: Model, results: Iterable[Result]) -> str | None:
    """Return a remark on the first baseline of a model whose accuracy may be that of chance.

    `results` are those of the model.
    """
    names = model.baselines.values()
    for result in results:
        found, chance = result.accuracy, model.chance
        if result.variant in names and found and chance is not None and found.low <= chance:
            shares = [f"{100 * share:.1f}" for share in (found.top1, found.low, found.high)]
            return (
                f"the baseline itself is poor: its accuracy is {shares[0]} % ({shares[1]} to "
                f"{shares[2]}), and always giving the most frequent label has {100 * chance:.1f} "
                "%; check the labels and their order, or train the model longer"
            )
    return None


def truncation_words(splits: Mapping[str, Truncation]) -> str | None:
    """Return which texts were cut, per split; None if none were."""
    words = []
    for split, key in KEYS.items():
        if (found := splits.get(split)) and found.truncated:
            texts = "text was" if found.texts == 1 else "texts were"
            words.append(
                f"{found.truncated:,} of {found.texts:,} {split} {texts} cut at "
                f"{key} = {found.max_sequence} tokens"
            )
    return "; ".join(words) or None


def chance_of(records: Iterable[AccuracyRecord]) -> float | None:
    """Return the share of the most frequent label among a model's evaluation examples.

    It is the accuracy of always answering this label, and no less than that of guessing. None
    without labels.
    """
    labels = max((record.labels or () for record in records), key=len, default=())
    return max(Counter(labels).values()) / len(labels) if labels else None


def member_entries(
    root: str, checkpoints: Checkpoints, reasons: Mapping[str, str]
) -> list[FamilyMember]:
    """Return the root, and after each model those that start from it.

    `reasons` say why no engine of a model was timed.
    """
    made = checkpoints[root]
    parent, changes, parameters = parent_of(made), changes_of(made), made["parameters"]
    found = [FamilyMember(root, parent, changes, parameters, reasons.get(root))]
    for name, one in checkpoints.items():
        if parent_of(one) == root:
            found += member_entries(name, checkpoints, reasons)
    return found


def changes_of(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was changed of a model, by the key of the configuration.

    Not the ranges that it learnt, which are many, only whether some are of outputs.
    """
    found: dict[str, Any] = {}
    for key, name in CHANGES.items():
        value = checkpoint.get(name)
        if isinstance(value, dict):
            value = {name: one for name, one in value.items() if one is not None}
        if value:
            found[key] = value
    if learnt := found.get("qat"):
        outputs = {"outputs": True} if "outputs" in learnt else {}
        found["qat"] = {"scheme": learnt["scheme"], **outputs}
    return found
