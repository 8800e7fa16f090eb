"""How much a model's loss depends on each block and on each neuron, by first-order Taylor."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch

from tightrope.errors import TightropeError
from tightrope.model.blocks import feed_forward_of, has_layers, module_at, stages_of
from tightrope.model.structures import Importance

# places in a block of the products whose inputs are its units, without feed-forward layers
OTHER_UNITS = ("attention.output.dense", "attention.out_lin", "pwconv2")

# inputs by name, and labels int64 [batch]
Batch = tuple[dict[str, torch.Tensor], torch.Tensor]


def importance_of(model: Any, batches: Iterable[Batch]) -> list[list[Importance]]:
    """Return the importance of the blocks of each stage.

    A unit is an input channel of the last product of a residual branch. Removing it changes the
    loss of an example, to first order, by the sum over its positions of activation x gradient,
    which is the sum of weight x gradient of the unit's weights in that product. Its importance is
    the mean of the absolute value over examples (Molchanov et al. 2016, arXiv 1611.06440; Michel et
    al. 2019, arXiv 1905.10650); that of a block is the sum over its units.

    Raises TightropeError for a block of another form.
    """
    stages = stages_of(model)
    sums: dict[torch.nn.Module, torch.Tensor] = {}
    found = [[Units(block, neurons=has_layers(model)) for block in blocks] for blocks in stages]
    products = [product for blocks in found for block in blocks for product in block.products]
    hooks = [one.register_forward_pre_hook(partial(add_importance, sums)) for one in products]
    examples = 0
    try:
        for inputs, labels in batches:
            logits = model(**inputs).logits
            torch.nn.functional.cross_entropy(logits, labels, reduction="sum").backward()
            model.zero_grad(set_to_none=True)
            examples += len(labels)
    finally:
        for hook in hooks:
            hook.remove()
    means = {product: value / examples for product, value in sums.items()}
    return [[block.importance(means) for block in blocks] for blocks in found]


class Units:
    """The units of a block: inputs of the last products of its residual branches."""

    def __init__(self, block: torch.nn.Module, *, neurons: bool) -> None:
        """Find the products; those of a feed-forward layer where its `neurons` can be removed."""
        self.out = feed_forward_of(block)[1] if neurons else None
        places = [module_at(block, place) for place in OTHER_UNITS]
        self.others = [one for one in places if isinstance(one, torch.nn.Linear)]
        if not self.others:
            raise TightropeError(
                f"prune: {type(block).__name__} has no {' or '.join(OTHER_UNITS)}, whose inputs "
                "say how important it is; give prune.layers in the place of a target"
            )

    @property
    def products(self) -> list[torch.nn.Module]:
        """Return all products of the block whose inputs are units."""
        return [*self.others, *([self.out] if self.out is not None else [])]

    def importance(self, means: dict[torch.nn.Module, torch.Tensor]) -> Importance:
        """Return the importance of the block from that of the units of each product."""
        neurons = means[self.out].tolist() if self.out is not None else []
        return Importance(neurons, sum(float(means[one].sum()) for one in self.others))


def add_importance(
    sums: dict[torch.nn.Module, torch.Tensor], product: torch.nn.Module, inputs: tuple[Any, ...]
) -> None:
    """Add |activation x gradient| of each channel of the inputs, when their gradient is known."""
    activation = inputs[0]

    def add(gradient: torch.Tensor) -> None:
        effect = (activation.detach() * gradient).flatten(1, -2).sum(1).abs().sum(0)
        sums[product] = sums.get(product, torch.zeros_like(effect)) + effect

    activation.register_hook(add)
