"""Models that are made from another one of the configuration, by the manifests of checkpoints."""

from tightrope.artifacts.manifest_types import CheckpointManifest

# what the source of a checkpoint begins with that is another model's
KIND = "model:"


def parent_of(checkpoint: CheckpointManifest) -> str | None:
    """Return the model that the model of a checkpoint starts from, else its teacher, else None."""
    source, distill = checkpoint["source"], checkpoint.get("distill")
    if source.startswith(KIND):
        return source.removeprefix(KIND)
    return None if distill is None else str(distill["from"])
