"""What is changed of a checkpoint's model before it is trained or converted."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypedDict

from tightrope.artifacts.content import read_artifact
from tightrope.model.activations import swap_activation
from tightrope.model.pruning import prune
from tightrope.model.sparsity import Sparsity, facts

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

    `target` is what the rule choose_structure found, where it has chosen what is kept. `sparsity`
    is reached in the course of a training, or at once where there is none.
    """

    activation: str | None = None
    prune: Mapping[str, Any] = NOTHING
    target: Mapping[str, Any] = NOTHING
    sparsity: Sparsity | None = None

    @classmethod
    def of(cls, job: Any) -> Self:
        """Return the changes of a job, see `tightrope.jobs.job.current_job`."""
        asked, chosen = job.params.sparsity, dict(job.input.items()).get("structure")
        sparsity = None if asked is None else Sparsity(**asked)
        if chosen is None:
            return cls(job.params.activation, job.params.prune, sparsity=sparsity)
        document = read_artifact(chosen, Chosen)
        return cls(job.params.activation, document["prune"], document["target"], sparsity)

    def facts(self, model: Any) -> dict[str, Any]:
        """Return what the manifest of the changed model says of this, without lists of neurons."""
        pruned = {name: kept for name, kept in self.prune.items() if name not in LISTS}
        target = {"target": dict(self.target)} if self.target else {}
        sparsity = self.sparsity and {**self.sparsity._asdict(), **facts(model)}
        return {"activation": self.activation, "prune": pruned | target, "sparsity": sparsity}

    def apply(self, model: Any, *, trained: bool) -> None:
        """Change the model before it is `trained`, if it is.

        Raises TightropeError where it cannot be pruned so.
        """
        if any(kept is not None for kept in self.prune.values()):
            prune(model, **self.prune)
        if self.activation is not None:
            swap_activation(model, self.activation)
        if self.sparsity is not None and not trained:
            self.sparsity.apply(model)
