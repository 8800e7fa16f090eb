"""What is changed of a checkpoint's model before it is trained or converted."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from tightrope.model.activations import swap_activation
from tightrope.model.pruning import prune


class Changes(NamedTuple):
    """`activation` replaces the checkpoint's; `prune` are the arguments of `pruning.prune`."""

    activation: str | None = None
    prune: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def of(cls, job: Any) -> Self:
        """Return the changes of a job, see `tightrope.jobs.job.current_job`."""
        return cls(job.params.activation, job.params.prune)

    def facts(self) -> dict[str, Any]:
        """Return what the manifest of the changed model says of this."""
        return {"activation": self.activation, "prune": dict(self.prune)}

    def apply(self, model: Any) -> None:
        """Change the model; raise TightropeError where it cannot be pruned so."""
        if any(kept is not None for kept in self.prune.values()):
            prune(model, **self.prune)
        if self.activation is not None:
            swap_activation(model, self.activation)
