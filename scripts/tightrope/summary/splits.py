"""Splits of the models of a run, as the summary describes them."""

from collections.abc import Iterable
from pathlib import Path

from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import SplitManifest
from tightrope.inputs.encode import read_split, require_split
from tightrope.summary.accuracy import Split

# manifests of splits by model and split
SplitsByModel = dict[str, dict[str, Path]]


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
