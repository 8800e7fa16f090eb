"""How much a model's loss depends on each block and on each neuron, and the weights of each."""

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from tightrope.model.pruning import (
    heads_of,
    keep_blocks,
    keep_heads,
    keep_neurons,
    neurons_of,
    parameters,
    stages_of,
    width_of,
)
from tightrope.model.structures import (
    Costs,
    Importance,
    Judged,
    Table,
    in_proportion,
    largest,
    some_widths,
    width_step,
    widths_up_to,
)

# the loss of narrower layers is measured at these parts of their width, and at the smallest
JUDGED_PARTS = 4
# inputs by name, and labels int64 [batch]
Batch = tuple[dict[str, torch.Tensor], torch.Tensor]


def taylor(
    model: Any, batches: Iterable[Batch], groups: dict[torch.nn.Linear, int]
) -> dict[torch.nn.Linear, list[float]]:
    """Return the importance of what enters each product, to first order (Taylor).

    Removing a neuron changes the loss of an example by the sum over its positions of activation x
    gradient, which is the sum of weight x gradient of its outgoing weights. Its importance is the
    mean of the absolute value over examples (Molchanov et al. 2016, arXiv 1611.06440). `groups` are
    how many channels in a row are judged as one, which is the size of a head.
    """
    sums: dict[torch.nn.Module, torch.Tensor] = {}

    def watch(size: int, product: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
        activation = inputs[0]

        def add(gradient: torch.Tensor) -> None:
            channels = (activation.detach() * gradient).flatten(1, -2).sum(1)
            effect = channels.unflatten(1, (-1, size)).sum(2).abs().sum(0)
            sums[product] = sums.get(product, torch.zeros_like(effect)) + effect

        activation.register_hook(add)

    hooks = [
        product.register_forward_pre_hook(partial(watch, size)) for product, size in groups.items()
    ]
    examples = 0
    try:
        for inputs, labels in batches:
            summed_loss(model, inputs, labels).backward()
            model.zero_grad(set_to_none=True)
            examples += len(labels)
    finally:
        for hook in hooks:
            hook.remove()
    return {product: (sums[product] / examples).tolist() for product in groups}


def block_importance(model: Any, batches: Sequence[Batch]) -> list[list[float]]:
    """Return by how much the mean loss grows without each block of each stage, which is measured.

    First-order Taylor says little of whole blocks: it misses that the last one feeds the
    classifier. A block that is alone in its stage stays, with importance 0.
    """
    sizes = [len(blocks) for blocks in stages_of(model)]
    whole = mean_loss(model, batches)

    def grown(stage: int, block: int) -> float:
        if sizes[stage] == 1:
            return 0.0
        smaller, kept = copy.deepcopy(model), [list(range(size)) for size in sizes]
        kept[stage].remove(block)
        keep_blocks(smaller, kept)
        return mean_loss(smaller, batches) - whole

    return [[grown(stage, block) for block in range(size)] for stage, size in enumerate(sizes)]


def smaller_losses(
    model: Any, sizes: Iterable[int], shrink: Callable[[Any, int], None], batches: Sequence[Batch]
) -> dict[int, float]:
    """Return by how much the mean loss of copies grows that `shrink` brings to these sizes.

    By size, in ascending order; it never falls with a smaller one.
    """
    whole, worst = mean_loss(model, batches), 0.0
    found: dict[int, float] = {}
    for size in sorted(sizes, reverse=True):
        smaller = copy.deepcopy(model)
        shrink(smaller, size)
        worst = max(worst, mean_loss(smaller, batches) - whole)
        found[size] = worst
    return dict(reversed(found.items()))


def mean_loss(model: Any, batches: Iterable[Batch]) -> float:
    """Return the mean cross-entropy over the examples."""
    total, examples = 0.0, 0
    with torch.inference_mode():
        for inputs, labels in batches:
            total += float(summed_loss(model, inputs, labels))
            examples += len(labels)
    return total / examples


def summed_loss(model: Any, inputs: dict[str, torch.Tensor], labels: torch.Tensor) -> torch.Tensor:
    """Return the cross-entropy summed over the examples of a batch."""
    return cross_entropy(model(**inputs).logits, labels, reduction="sum")


def importance_of(model: Any, examples: Iterable[Batch], fewer: Sequence[Batch]) -> Judged:
    """Return the importance of the blocks of each stage, and the losses of smaller ones.

    Neurons are judged on `examples`, which is one pass; the rest on `fewer`, a pass for each block,
    width and number of heads, of which the most important neurons and heads of all layers are kept.
    Stages whose blocks have no known feed-forward layer have no neurons, and no narrowing.
    """
    blocks = block_importance(model, fewer)
    parts = [own for stage in neurons_of(model) for own in stage]
    if not parts:
        return Judged([[Importance([], value) for value in stage] for stage in blocks], {})
    attentions = heads_of(model)
    found = taylor(model, examples, {one.out: one.size for one in (*parts, *attentions)})
    neurons, heads = ([found[one.out] for one in channels] for channels in (parts, attentions))
    # in the order of the blocks; without known attention none has heads
    own_neurons, own_heads = iter(neurons), iter(heads)
    stages = [
        [Importance(next(own_neurons), value, next(own_heads, [])) for value in stage]
        for stage in blocks
    ]

    def remove(smaller: Any, count: int) -> None:
        keep_heads(smaller, count, [largest(own, count) for own in heads])

    fewer_heads = None
    if heads:
        counts = some_widths(len(heads[0]), JUDGED_PARTS, 1)
        fewer_heads = smaller_losses(model, counts, remove, fewer)
    first = len(neurons[0])

    def narrow(smaller: Any, width: int) -> None:
        kept = [largest(own, in_proportion(len(own), width, first)) for own in neurons]
        keep_neurons(smaller, width, kept)

    widths = some_widths(first, JUDGED_PARTS, width_step(len(stages), first))
    return Judged(stages, smaller_losses(model, widths, narrow, fewer), fewer_heads)


def parameter_table(model: Any) -> Table:
    """Return the number of weights of each structure as costs, see `structures.Costs`."""
    stages, width, known = stages_of(model), width_of(model), heads_of(model)
    whole, neurons = known[0].number if known else None, neurons_of(model)

    def by_depth(stage: int, narrow: int | None, heads: int | None) -> list[float]:
        """Return the weights of a stage's blocks where the first stage has `narrow` neurons."""
        removed = 0 if heads is None else (known[0].number - heads) * known[0].weights
        if width is not None and narrow is not None:
            own = neurons[stage][0]
            removed += (own.number - in_proportion(own.number, narrow, width)) * own.weights
        block = parameters(stages[stage][0]) - removed
        return [float(depth * block) for depth in range(1, len(stages[stage]) + 1)]

    # as if the blocks of a stage were alike
    counted = sum(len(blocks) * parameters(blocks[0]) for blocks in stages)
    rest = float(parameters(model) - counted)
    return {
        (one, heads): Costs(rest, [by_depth(stage, one, heads) for stage in range(len(stages))])
        for one in widths_up_to(width, width_step(len(stages), width))
        for heads in widths_up_to(whole, 1)
    }
