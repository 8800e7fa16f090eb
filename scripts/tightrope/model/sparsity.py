"""Set the weights of smallest magnitude to zero; the shapes of the model stay as they are."""

import zlib
from typing import Any, NamedTuple

import torch

from tightrope.model.classifier import output_layer

ANY = "any"
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


class Sparsity(NamedTuple):
    """A share of each weight matrix that is zero, those of smallest magnitude.

    With `pattern` 2:4 these are two of four neighbours in a row, which the tensor cores of NVIDIA
    GPUs skip, and `share` at most 0.5.
    """

    share: float
    pattern: str = ANY

    @torch.no_grad()
    def apply(self, model: Any) -> None:
        """Set the weights to zero."""
        for weight in sparse_weights(model):
            weight.mul_(kept(weight.abs(), self.share, self.pattern))


class SparseTraining:
    """Keeps weights at zero during a training, and chooses more of them every few steps.

    What is zero follows from the weights alone, so that a resumed training goes on as before.
    """

    def __init__(self, model: Any, sparsity: Sparsity, *, steps: int) -> None:
        """Start or go on with a training of so many `steps`."""
        self.weights, self.sparsity, self.steps = sparse_weights(model), sparsity, steps
        self.masks: list[torch.Tensor] | None = None

    @torch.no_grad()
    def before_step(self) -> None:
        """Remember what is zero."""
        self.masks = self.masks or [weight != 0 for weight in self.weights]

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        """Set to zero what was zero, and more where it is time; `step` counts from 1."""
        if step % EVERY == 0 or step == self.steps:
            share = share_at(step / self.steps, self.sparsity.share)
            self.masks = [
                kept(weight.abs(), share, self.sparsity.pattern) for weight in self.weights
            ]
        for weight, mask in zip(self.weights, self.masks or (), strict=True):
            weight.mul_(mask)


def kept(sizes: torch.Tensor, share: float, pattern: str) -> torch.Tensor:
    """Return which of the weights with these magnitudes [out, in] are kept, bool.

    Rows that are no multiple of four have no groups: of them any weight may be zero.
    """
    if pattern == ANY or sizes.shape[1] % 4:
        count = round(share * sizes.numel())
        return sizes >= 0 if count == 0 else sizes > sizes.flatten().kthvalue(count).values
    groups = sizes.view(-1, 4)
    mask = torch.ones_like(groups, dtype=torch.bool)
    mask.scatter_(1, groups.argsort(dim=1, stable=True)[:, :2], False)
    lost = torch.where(mask, 0, groups).sum(1)
    dense = lost.argsort(stable=True)[round(2 * share * len(groups)) :]
    mask[dense] = True
    return mask.view_as(sizes)


def facts(model: Any) -> dict[str, float | int]:
    """Return the share of zeros in the weights that may be sparse, and bytes by zlib of all."""
    weights = sparse_weights(model)
    zeros = sum(int((weight == 0).sum()) for weight in weights)
    packer = zlib.compressobj(level=6)
    size = sum(
        len(packer.compress(weight.detach().cpu().contiguous().numpy().tobytes()))
        for weight in model.parameters()
    )
    return {
        "zeros": zeros / max(1, sum(weight.numel() for weight in weights)),
        "compressed_bytes": size + len(packer.flush()),
    }


def share_at(progress: float, share: float) -> float:
    """Return the share of zeros after this part of a training, from 0 to `share`.

    It grows by a cubic schedule until two thirds of the training, then stays (Zhu & Gupta 2017,
    "To prune, or not to prune", equation 1).
    """
    done = min(1.0, 1.5 * progress)
    return share * (1 - (1 - done) ** 3)
