"""Set the weights of smallest magnitude to zero in the course of a training."""

from typing import Any

import torch

from tightrope.model.classifier import output_layer

# steps of a training between two choices of the weights that are zero
EVERY = 16


def sparse_weights(model: Any) -> list[torch.Tensor]:
    """Return the weights that may become sparse: of linear layers, but not of the last one.

    Embeddings stay dense, as in oBERT (Kurtic et al. 2022, arXiv 2203.07259, section 4).
    """
    last = output_layer(model)
    return [
        layer.weight
        for layer in model.modules()
        if isinstance(layer, torch.nn.Linear) and layer is not last
    ]


class SparseTraining:
    """Keeps a share of each weight matrix at zero, those of smallest magnitude.

    There are ever more of them, chosen every few steps. What is zero follows from the weights
    alone, so that a resumed training goes on as before.
    """

    def __init__(self, model: Any, share: float, *, steps: int) -> None:
        """Start or go on with a training of so many `steps`."""
        self.weights, self.share, self.steps = sparse_weights(model), share, steps
        self.masks: list[torch.Tensor] | None = None

    @torch.no_grad()
    def before_step(self) -> None:
        """Remember what is zero."""
        self.masks = self.masks or [weight != 0 for weight in self.weights]

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        """Set to zero what was zero, and more where it is time; `step` counts from 1."""
        if step % EVERY == 0 or step == self.steps:
            share = share_at(step / self.steps, self.share)
            self.masks = [kept(weight.abs(), share) for weight in self.weights]
        for weight, mask in zip(self.weights, self.masks or (), strict=True):
            weight.mul_(mask)


def kept(sizes: torch.Tensor, share: float) -> torch.Tensor:
    """Return which of the weights with these magnitudes [out, in] are kept, bool."""
    count = round(share * sizes.numel())
    return sizes >= 0 if count == 0 else sizes > sizes.flatten().kthvalue(count).values


def share_at(progress: float, share: float) -> float:
    """Return the share of zeros after this part of a training, from 0 to `share`.

    It grows by a cubic schedule until two thirds of the training, then stays (Zhu & Gupta 2017,
    "To prune, or not to prune", equation 1).
    """
    done = min(1.0, 1.5 * progress)
    return share * (1 - (1 - done) ** 3)
