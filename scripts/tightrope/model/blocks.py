"""Where the blocks and attention heads of a transformers model are, and the removal of heads."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from tightrope.errors import TightropeError

# places of the layers in a base model, and of its stages, each with a list of blocks
LAYERS = ("encoder.layer", "transformer.layer")
STAGES, BLOCKS = "encoder.stages", "layers"
# places in a block of the two products of its feed-forward layer
FEED_FORWARD = (
    ("intermediate.dense", "output.dense"),
    ("ffn.lin1", "ffn.lin2"),
    ("pwconv1", "pwconv2"),
)
# between the products of ConvNeXt V2: it has weights for each neuron, which would not fit
NORMALIZED = "grn"
# names in config.json of the number of layers, of neurons of a feed-forward layer, and of the
# numbers of blocks of the stages
DEPTH, WIDTH = ("num_hidden_layers", "n_layers"), ("intermediate_size", "hidden_dim")
DEPTHS = "depths"
# places in a layer of its attention, of the products into queries, keys and values, and out of it
ATTENTION = (
    ("attention.self", ("query", "key", "value"), "attention.output.dense"),
    ("attention", ("q_lin", "k_lin", "v_lin"), "attention.out_lin"),
)
# attributes of an attention that hold the number of heads, and that times their size
HEADS, ALL_HEADS = ("num_attention_heads", "n_heads"), "all_head_size"


def stages_of(model: Any) -> list[torch.nn.ModuleList]:
    """Return the blocks of each stage: an encoder of equal layers has one stage.

    Raises TightropeError for a model of another form.
    """
    if (layers := layers_in(model)) is not None:
        return [layers]
    stages = module_at(model.base_model, STAGES)
    found = [module_at(stage, BLOCKS) for stage in stages or ()]
    lists = [blocks for blocks in found if isinstance(blocks, torch.nn.ModuleList)]
    sizes = [len(blocks) for blocks in lists]
    if not sizes or sizes != getattr(model.config, DEPTHS, None):
        places = (*LAYERS, f"{STAGES} with {BLOCKS}")
        raise TightropeError(
            f"prune: {type(model.base_model).__name__} has no {' or '.join(places)}; only models "
            "of that form, such as BERT, RoBERTa, DistilBERT and ConvNeXt, are pruned yet"
        )
    return lists


def layers_in(model: Any) -> torch.nn.ModuleList | None:
    """Return the layers of an encoder of equal ones, None for a model of another form."""
    found = (module_at(model.base_model, place) for place in LAYERS)
    return next((one for one in found if isinstance(one, torch.nn.ModuleList)), None)


def width_of(model: Any) -> int | None:
    """Return the neurons of each feed-forward layer, with stages those of the first one.

    None for stages whose blocks have no known feed-forward layer. Raises TightropeError for layers.
    """
    widths = stage_widths(model)
    return widths[0] if widths else None


def stage_widths(model: Any) -> list[int]:
    """Return the neurons of a block of each stage; none where `width_of` is None."""
    firsts = [blocks[0] for blocks in stages_of(model)]
    if layers_in(model) is None and None in map(products_of, firsts):
        return []
    return [int(feed_forward_of(block)[0].out_features) for block in firsts]


def feed_forward_of(layer: torch.nn.Module) -> tuple[torch.nn.Linear, torch.nn.Linear]:
    """Return the products into and out of the neurons of a layer; raise TightropeError."""
    found = products_of(layer)
    if found is None:
        raise TightropeError(f"prune.intermediate: {type(layer).__name__} has no known layers")
    return found


def products_of(layer: torch.nn.Module) -> tuple[torch.nn.Linear, torch.nn.Linear] | None:
    """Return what `feed_forward_of` does, None for a layer of another form."""
    if module_at(layer, NORMALIZED) is not None:
        return None
    for places in FEED_FORWARD:
        into, out = (module_at(layer, place) for place in places)
        if isinstance(into, torch.nn.Linear) and isinstance(out, torch.nn.Linear):
            return into, out
    return None


def module_at(module: Any, place: str) -> Any:
    """Return the module at a place with dots, None where there is none."""
    for name in place.split("."):
        module = getattr(module, name, None)
    return module


def set_size(config: Any, names: Sequence[str], size: int) -> None:
    """Set the size in config.json, under the first of `names` that the architecture uses."""
    own = next(name for name in names if name in config.to_dict())
    setattr(config, own, size)


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
    for place, products, last in ATTENTION:
        attention, out = module_at(layer, place), module_at(layer, last)
        into = [module_at(attention, name) for name in products]
        size = module_at(attention, "attention_head_size")
        if size and all(isinstance(one, torch.nn.Linear) for one in (*into, out)):
            return Heads(attention, into, out, int(size))
    return None


def heads_of(model: Any) -> int | None:
    """Return the heads of each layer, None where they are not found."""
    found = heads_in(stages_of(model)[0][0]) if layers_in(model) is not None else None
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
        if kept is not None:
            keep_only_heads(heads, kept[number])
            continue
        values = heads.into[-1].weight.detach().reshape(heads.number, -1)
        columns = heads.out.weight.detach().T.reshape(heads.number, -1)
        importance = values.norm(dim=1) * columns.norm(dim=1)
        keep_only_heads(heads, importance.topk(count).indices.sort().values.tolist())


def layer_heads(model: Any) -> list[Heads]:
    """Return the heads of each layer, none where they are not found."""
    if layers_in(model) is None:
        return []
    found = [heads_in(layer) for layer in stages_of(model)[0]]
    return [heads for heads in found if heads is not None]


def keep_only_heads(heads: Heads, kept: Sequence[int]) -> None:
    """Remove all but these heads, counted from 0, from the products of a layer."""
    channels = [head * heads.size + one for head in kept for one in range(heads.size)]
    keep_channels(heads.into, heads.out, channels)
    for name in HEADS:
        if hasattr(heads.attention, name):
            setattr(heads.attention, name, len(kept))
    if hasattr(heads.attention, ALL_HEADS):
        setattr(heads.attention, ALL_HEADS, len(channels))


def keep_channels(
    into: Sequence[torch.nn.Linear], out: torch.nn.Linear, kept: Sequence[int]
) -> None:
    """Remove all but these channels between products into them and the one out of them."""
    for product in into:
        product.weight = torch.nn.Parameter(product.weight.detach()[[*kept]])
        if product.bias is not None:
            product.bias = torch.nn.Parameter(product.bias.detach()[[*kept]])
        product.out_features = len(kept)
    out.weight = torch.nn.Parameter(out.weight.detach()[:, [*kept]])
    out.in_features = len(kept)
