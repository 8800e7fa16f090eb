"""Remove layers of a transformers encoder or blocks of a ConvNeXt, and neurons of them.

What is left is a model of the same architecture with smaller sizes in its config.json, see
`tightrope.model.noted_sizes` for those that config.json has no field of its own for.
"""

from collections.abc import Sequence
from typing import Any

import torch

from tightrope.errors import TightropeError
from tightrope.model.attention_heads import keep_heads
from tightrope.model.blocks import (
    DEPTH,
    DEPTHS,
    LAYERS,
    WIDTH,
    feed_forward_of,
    has_layers,
    set_size,
    stages_of,
    width_of,
)
from tightrope.model.noted_sizes import note_sizes
from tightrope.model.structures import in_proportion


def prune(
    model: Any,
    *,
    layers: int | Sequence[int] | None = None,
    intermediate: int | None = None,
    heads: int | None = None,
    neurons: Sequence[Sequence[int]] | None = None,
    blocks: Sequence[Sequence[int]] | None = None,
    kept_heads: Sequence[Sequence[int]] | None = None,
) -> None:
    """Keep so many or these `layers`, and `intermediate` neurons of each feed-forward layer.

    Of a number of layers, those at even distances with the last one are kept; of neurons those with
    the largest product of the norms of their weights, in and out, or those in `neurons`, of each
    kept layer. `blocks` are the kept blocks of each stage, of a model with stages, where
    `intermediate` is of the blocks of the first one and the others keep the same share of their
    neurons. `heads` is how many attention heads each layer keeps, `kept_heads` which, of each kept
    layer, see `keep_heads`. All are counted from 0. Raises TightropeError where the model has no
    such layers, or not so many.
    """
    before = parameters(model)
    if layers is not None:
        keep_layers(model, layers)
    if blocks is not None:
        keep_blocks(model, blocks)
    if intermediate is not None:
        keep_neurons(model, intermediate, neurons)
    if heads is not None:
        keep_heads(model, heads, kept_heads)
    note_sizes(model)
    print(f"{type(model).__name__}: {parameters(model):,} of {before:,} parameters are left")


def parameters(model: Any) -> int:
    """Return the number of weights."""
    return sum(weight.numel() for weight in model.parameters())


def keep_layers(model: Any, layers: int | Sequence[int]) -> None:
    """Keep so many or these layers, counted from 0."""
    found = layers_of(model)
    kept = [*layers] if isinstance(layers, Sequence) else evenly(layers, len(found))
    if not kept or sorted(set(kept)) != kept or not 0 <= kept[0] <= kept[-1] < len(found):
        raise TightropeError(
            f"prune.layers = {layers}: {type(model).__name__} has layers 0 to {len(found) - 1}; "
            "name some of them in ascending order, or how many to keep"
        )
    keep_blocks(model, [kept])


def keep_blocks(model: Any, blocks: Sequence[Sequence[int]]) -> None:
    """Keep these blocks of each stage."""
    for stage, kept in zip(stages_of(model), blocks, strict=True):
        keep_only(stage, kept)
    if has_layers(model):
        set_size(model.config, DEPTH, len(blocks[0]))
    else:
        setattr(model.config, DEPTHS, [len(kept) for kept in blocks])


def keep_neurons(model: Any, width: int, neurons: Sequence[Sequence[int]] | None = None) -> None:
    """Keep `width` neurons, see `prune`, or these `neurons` of each block of all stages."""
    first = width_of(model)
    if first is None:
        kind = type(model.base_model).__name__
        raise TightropeError(
            f"prune.intermediate = {width}: {kind} has no known feed-forward layer"
        )
    if not 0 < width <= first:
        raise TightropeError(f"prune.intermediate = {width}: keep 1 to {first}, which are there")
    for number, block in enumerate(block for blocks in stages_of(model) for block in blocks):
        own = in_proportion(feed_forward_of(block)[0].out_features, width, first)
        narrow(block, own, None if neurons is None else neurons[number])
    if has_layers(model):
        set_size(model.config, WIDTH, width)


def keep_only(modules: torch.nn.ModuleList, kept: Sequence[int]) -> None:
    """Delete all but these modules of a list."""
    for number in reversed(range(len(modules))):
        if number not in kept:
            del modules[number]


def evenly(count: int, total: int) -> list[int]:
    """Return `count` of `total` indices at even distances, the last one among them."""
    return [round((number + 1) * total / count) - 1 for number in range(count)]


def layers_of(model: Any) -> torch.nn.ModuleList:
    """Return the layers, or the blocks of the only stage; raise TightropeError for other models."""
    found = stages_of(model)
    if len(found) == 1:
        return found[0]
    raise TightropeError(
        f"prune: {type(model.base_model).__name__} has no {' or '.join(LAYERS)}; only encoders of "
        "that form, such as BERT, RoBERTa and DistilBERT, are pruned yet"
    )


def narrow(layer: torch.nn.Module, width: int, neurons: Sequence[int] | None = None) -> None:
    """Keep `width` neurons of the layer's feed-forward layer in their order.

    These `neurons`, or the most important by the norms of their weights.
    """
    into, out = feed_forward_of(layer)
    with torch.no_grad():
        importance = into.weight.norm(dim=1) * out.weight.norm(dim=0)
        largest = importance.topk(width).indices.sort().values
        kept = largest if neurons is None else torch.tensor(neurons)
        into.weight = torch.nn.Parameter(into.weight[kept])
        into.bias = torch.nn.Parameter(into.bias[kept])
        out.weight = torch.nn.Parameter(out.weight[:, kept])
    into.out_features = out.in_features = width
