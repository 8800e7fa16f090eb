"""What is changed of a checkpoint's model before it is trained or converted."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from tightrope.model.activations import swap_activation
from tightrope.model.pruning import prune
from tightrope.model.sparsity import Sparsity, facts


class Changes(NamedTuple):
    """`activation` replaces the checkpoint's; `prune` are the arguments of `pruning.prune`.

    `sparsity` is reached in the course of a training, or at once where there is none.
    """

    activation: str | None = None
    prune: Mapping[str, Any] = MappingProxyType({})
    sparsity: Sparsity | None = None

    @classmethod
    def of(cls, job: Any) -> Self:
        """Return the changes of a job, see `tightrope.jobs.job.current_job`."""
        asked = job.params.sparsity
        sparsity = None if asked is None else Sparsity(**asked)
        return cls(job.params.activation, job.params.prune, sparsity)

    def facts(self, model: Any) -> dict[str, Any]:
        """Return what the manifest of the changed model says of this."""
        found: dict[str, Any] = {"activation": self.activation, "prune": dict(self.prune)}
        sparsity = self.sparsity and {**self.sparsity._asdict(), **facts(model)}
        return {**found, "sparsity": sparsity}

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
