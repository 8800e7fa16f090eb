"""Attention heads of an encoder's layers: where they are, and the removal of some."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from tightrope.errors import TightropeError
from tightrope.model.blocks import has_layers, module_at, stages_of

# places in a layer of its attention, of the products into queries, keys and values, and out of it
PLACES = (
    ("attention.self", ("query", "key", "value"), "attention.output.dense"),
    ("attention", ("q_lin", "k_lin", "v_lin"), "attention.out_lin"),
)
# attributes of an attention that hold the number of heads, and that times their size
COUNTS, WHOLE = ("num_attention_heads", "n_heads"), "all_head_size"


class Heads(NamedTuple):
    """Attention of a layer: the products into queries, keys and values, the one out, and `size`.

    `size` is the number of channels of a head.
    """

    attention: Any
    into: list[torch.nn.Linear]
    out: torch.nn.Linear
    size: int

    @property
    def number(self) -> int:
        """Return the number of heads."""
        return self.out.in_features // self.size

    @property
    def weights(self) -> int:
        """Return the number of weights of a head."""
        into = sum(one.in_features + (one.bias is not None) for one in self.into)
        return self.size * (into + self.out.out_features)


def heads_in(layer: torch.nn.Module) -> Heads | None:
    """Return the heads of a layer, None for attention of another form."""
    for place, products, last in PLACES:
        attention, out = module_at(layer, place), module_at(layer, last)
        into = [module_at(attention, name) for name in products]
        size = module_at(attention, "attention_head_size")
        if size and all(isinstance(one, torch.nn.Linear) for one in (*into, out)):
            return Heads(attention, into, out, int(size))
    return None


def heads_of(model: Any) -> int | None:
    """Return the heads of each layer, None where they are not found."""
    if not has_layers(model):
        return None
    found = heads_in(stages_of(model)[0][0])
    return found and found.number


def keep_heads(model: Any, count: int, kept: Sequence[Sequence[int]] | None = None) -> None:
    """Keep so many heads of each layer, those whose weights of values, in and out, are largest.

    Or these heads, `kept`, of each layer, counted from 0. Raises TightropeError where there are not
    so many, or none that are known.
    """
    whole = heads_of(model)
    if whole is None:
        kind = type(model.base_model).__name__
        raise TightropeError(
            f"prune.heads = {count}: {kind} has no attention of a known form; heads of BERT, "
            "RoBERTa and DistilBERT are pruned yet"
        )
    if not 0 < count <= whole:
        raise TightropeError(f"prune.heads = {count}: keep 1 to {whole}, which are there")
    for number, heads in enumerate(layer_heads(model)):
        keep_only_heads(heads, largest_heads(heads, count) if kept is None else kept[number])


def layer_heads(model: Any) -> list[Heads]:
    """Return the heads of each layer, none where they are not found."""
    if not has_layers(model):
        return []
    found = [heads_in(layer) for layer in stages_of(model)[0]]
    return [heads for heads in found if heads is not None]


def largest_heads(heads: Heads, count: int) -> list[int]:
    """Return so many heads with the largest product of the norms of their weights, in order."""
    values = heads.into[-1].weight.detach().reshape(heads.number, -1)
    columns = heads.out.weight.detach().T.reshape(heads.number, -1)
    importance = values.norm(dim=1) * columns.norm(dim=1)
    return [int(head) for head in importance.topk(count).indices.sort().values]


def keep_only_heads(heads: Heads, kept: Sequence[int]) -> None:
    """Remove all but these heads, counted from 0, from the products of a layer."""
    channels = [head * heads.size + one for head in kept for one in range(heads.size)]
    for product in heads.into:
        product.weight = torch.nn.Parameter(product.weight.detach()[channels])
        if product.bias is not None:
            product.bias = torch.nn.Parameter(product.bias.detach()[channels])
        product.out_features = len(channels)
    heads.out.weight = torch.nn.Parameter(heads.out.weight.detach()[:, channels])
    heads.out.in_features = len(channels)
    for name in COUNTS:
        if hasattr(heads.attention, name):
            setattr(heads.attention, name, len(kept))
    if hasattr(heads.attention, WHOLE):
        setattr(heads.attention, WHOLE, len(channels))
