"""The models of a cascade, and checks that they can be served as one."""

from pathlib import Path
from typing import Any, NamedTuple

from tightrope.artifacts.manifest import open_manifest, read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.errors import TightropeError


class Member(NamedTuple):
    """A model of a cascade: its variant, the manifests of engine and checkpoint, token limit."""

    model: str
    variant: str
    engine: Path
    checkpoint: Path
    max_sequence: int


def members_of(job: Any) -> tuple[Member, Member]:
    """Return the small and the large model of a job."""
    paths = dict(job.input.items())
    small, large = (
        Member(
            **job.params.members[name],
            engine=Path(paths[f"{name}_engine"]),
            checkpoint=Path(paths[f"{name}_checkpoint"]),
        )
        for name in ("small", "large")
    )
    return small, large


def require_same_labels(members: tuple[Member, Member]) -> None:
    """Raise TightropeError where the members have other labels."""
    small, large = (read_manifest(one.checkpoint, CheckpointManifest)["labels"] for one in members)
    if small != large:
        names = [", ".join(labels) for labels in (small, large)]
        raise TightropeError(
            f"cascades: {members[0].model} has the labels {names[0]}, {members[1].model} has "
            f"{names[1]}; both must have the same ones in the same order"
        )


def why_not_built(members: tuple[Member, Member]) -> str | None:
    """Return why a member has no engine, None where both have."""
    for one in members:
        built = open_manifest(one.engine, EngineManifest)
        if built["status"] != "ok":
            return f"not built: {one.model}/{one.variant}: {built['reason']}"
    return None
