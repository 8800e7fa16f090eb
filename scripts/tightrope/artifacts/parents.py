"""Models that start from another model of the configuration, by the manifests of checkpoints."""

from tightrope.artifacts.manifest_types import CheckpointManifest

# what the source of a checkpoint begins with that is another model's
KIND = "model:"


def parent_of(checkpoint: CheckpointManifest) -> str | None:
    """Return the model from which the model of a checkpoint starts, None if from no other."""
    source = checkpoint["source"]
    return source.removeprefix(KIND) if source.startswith(KIND) else None
