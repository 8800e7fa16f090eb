"""Where the blocks of a transformers model are, and their sizes."""

from collections.abc import Sequence
from typing import Any

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


def stages_of(model: Any) -> list[torch.nn.ModuleList]:
    """Return the blocks of each stage: an encoder of equal layers has one stage.

    Raises TightropeError for a model of another form.
    """
    for place in LAYERS:
        layers = module_at(model.base_model, place)
        if isinstance(layers, torch.nn.ModuleList):
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


def has_layers(model: Any) -> bool:
    """Return whether it is an encoder of equal layers, not one with stages."""
    return any(
        isinstance(module_at(model.base_model, place), torch.nn.ModuleList) for place in LAYERS
    )


def width_of(model: Any) -> int | None:
    """Return the neurons of each feed-forward layer, with stages those of the first one.

    None for stages whose blocks have no known feed-forward layer. Raises TightropeError for layers.
    """
    widths = stage_widths(model)
    return widths[0] if widths else None


def stage_widths(model: Any) -> list[int]:
    """Return the neurons of a block of each stage; none where `width_of` is None."""
    firsts = [blocks[0] for blocks in stages_of(model)]
    if not has_layers(model) and None in map(products_of, firsts):
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
