"""Members of a family, from the manifests of their checkpoints."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tightrope.artifacts.descent import parent_of
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.summary.family_types import FamilyMember

# fields of a checkpoint's manifest with a change, by the key of the configuration
CHANGES = {
    "prune": "prune",
    "activation": "activation",
    "distill": "distill",
    "qat": "qat",
    "train": "recipe",
}
# manifests of checkpoints by model
Checkpoints = Mapping[str, CheckpointManifest]


def read_checkpoints(paths: Iterable[Path | str]) -> Checkpoints:
    """Return the manifest of each model's checkpoint."""
    return {
        Path(path).parent.parent.name: open_manifest(path, CheckpointManifest) for path in paths
    }


def member_entries(
    root: str, checkpoints: Checkpoints, reasons: Mapping[str, str]
) -> list[FamilyMember]:
    """Return the root, and after each model those that start from it.

    `reasons` say why no engine of a model was timed.
    """
    made = checkpoints[root]
    entry: FamilyMember = {
        "model": root,
        "parent": parent_of(made),
        "changes": changes_of(made),
        "parameters": made["parameters"],
        "reason": reasons.get(root),
    }
    children = [name for name, one in checkpoints.items() if parent_of(one) == root]
    return [
        entry,
        *(one for name in children for one in member_entries(name, checkpoints, reasons)),
    ]


def changes_of(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was changed of a model, by the key of the configuration.

    Not the ranges that it learnt, which are many, only whether some are of outputs.
    """
    found = {key: without_nothing(checkpoint.get(name)) for key, name in CHANGES.items()}
    if found["qat"]:
        outputs = {"outputs": True} if "outputs" in found["qat"] else {}
        found["qat"] = {"scheme": found["qat"]["scheme"], **outputs}
    return {key: value for key, value in found.items() if value}


def without_nothing(value: Any) -> Any:
    """Return a value, of several by name those that are not None."""
    if isinstance(value, dict):
        return {name: one for name, one in value.items() if one is not None}
    return value
