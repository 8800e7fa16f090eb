"""What is changed of a checkpoint's model before it is trained or converted."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypedDict

from tightrope.artifacts.content import read_artifact
from tightrope.model.activations import swap_activation
from tightrope.model.pruning import prune

NOTHING: Mapping[str, Any] = MappingProxyType({})
# arguments of `pruning.prune` that are too long for a manifest
LISTS = ("neurons", "kept_heads")


class Kept(TypedDict, total=False):
    """Arguments of `pruning.prune`, as the rule choose_structure writes."""

    layers: int | list[int] | None
    intermediate: int | None
    heads: int | None
    neurons: list[list[int]] | None
    blocks: list[list[int]] | None
    kept_heads: list[list[int]] | None


class Chosen(TypedDict):
    """What a chosen structure keeps, and the target that it was chosen for."""

    prune: Kept
    target: dict[str, Any]


class Changes(NamedTuple):
    """`activation` replaces the checkpoint's; `prune` are the arguments of `pruning.prune`.

    `target` is what the rule choose_structure found, where it has chosen what is kept.
    """

    activation: str | None = None
    prune: Mapping[str, Any] = NOTHING
    target: Mapping[str, Any] = NOTHING

    @classmethod
    def of(cls, job: Any) -> Self:
        """Return the changes of a job, see `tightrope.jobs.job.current_job`."""
        chosen = dict(job.input.items()).get("structure")
        if chosen is None:
            return cls(job.params.activation, job.params.prune)
        document = read_artifact(chosen, Chosen)
        return cls(job.params.activation, document["prune"], document["target"])

    def facts(self) -> dict[str, Any]:
        """Return what the manifest of the changed model says of this, without lists of neurons."""
        pruned = {name: kept for name, kept in self.prune.items() if name not in LISTS}
        target = {"target": dict(self.target)} if self.target else {}
        return {"activation": self.activation, "prune": pruned | target}

    def apply(self, model: Any) -> None:
        """Change the model; raise TightropeError where it cannot be pruned so."""
        if any(kept is not None for kept in self.prune.values()):
            prune(model, **self.prune)
        if self.activation is not None:
            swap_activation(model, self.activation)
