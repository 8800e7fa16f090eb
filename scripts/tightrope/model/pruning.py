"""Remove layers of a transformers encoder, and neurons of its feed-forward layers.

What is left is a model of the same architecture with smaller sizes in its config.json.
"""

from collections.abc import Sequence
from typing import Any

import torch

from tightrope.errors import TightropeError

# places of the layers in a base model, and of the two products of a feed-forward layer in one
LAYERS = ("encoder.layer", "transformer.layer")
FEED_FORWARD = (("intermediate.dense", "output.dense"), ("ffn.lin1", "ffn.lin2"))
# names in config.json of the number of layers, and of neurons of a feed-forward layer
DEPTH, WIDTH = ("num_hidden_layers", "n_layers"), ("intermediate_size", "hidden_dim")


def prune(
    model: Any, *, layers: int | Sequence[int] | None = None, intermediate: int | None = None
) -> None:
    """Keep so many or these `layers`, and `intermediate` neurons of each feed-forward layer.

    Of a number of layers, those at even distances with the last one are kept; of neurons those with
    the largest product of the norms of their weights, in and out. Raises TightropeError where the
    model has no such layers, or not so many.
    """
    before = parameters(model)
    if layers is not None:
        keep_layers(model, layers)
    if intermediate is not None:
        for layer in layers_of(model):
            narrow(layer, intermediate)
        set_size(model.config, WIDTH, intermediate)
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
    numbers = set(kept)
    for number in reversed(range(len(found))):
        if number not in numbers:
            del found[number]
    set_size(model.config, DEPTH, len(found))


def evenly(count: int, total: int) -> list[int]:
    """Return `count` of `total` indices at even distances, the last one among them."""
    return [round((number + 1) * total / count) - 1 for number in range(count)]


def layers_of(model: Any) -> torch.nn.ModuleList:
    """Return the layers of the encoder; raise TightropeError where they are not found."""
    for place in LAYERS:
        found = module_at(model.base_model, place)
        if isinstance(found, torch.nn.ModuleList):
            return found
    raise TightropeError(
        f"prune: {type(model.base_model).__name__} has no {' or '.join(LAYERS)}; only encoders of "
        "that form, such as BERT, RoBERTa and DistilBERT, are pruned yet"
    )


def narrow(layer: torch.nn.Module, width: int) -> None:
    """Keep the `width` most important neurons of the layer's feed-forward layer, in their order."""
    for places in FEED_FORWARD:
        into, out = (module_at(layer, place) for place in places)
        if isinstance(into, torch.nn.Linear) and isinstance(out, torch.nn.Linear):
            break
    else:
        raise TightropeError(f"prune.intermediate: {type(layer).__name__} has no known layers")
    if not 0 < width <= into.out_features:
        raise TightropeError(
            f"prune.intermediate = {width}: keep 1 to {into.out_features}, which are there"
        )
    with torch.no_grad():
        importance = into.weight.norm(dim=1) * out.weight.norm(dim=0)
        kept = importance.topk(width).indices.sort().values
        into.weight = torch.nn.Parameter(into.weight[kept])
        into.bias = torch.nn.Parameter(into.bias[kept])
        out.weight = torch.nn.Parameter(out.weight[:, kept])
    into.out_features = out.in_features = width


def module_at(module: Any, place: str) -> Any:
    """Return the module at a place with dots, None where there is none."""
    for name in place.split("."):
        module = getattr(module, name, None)
    return module


def set_size(config: Any, names: Sequence[str], size: int) -> None:
    """Set the size in config.json, under the first of `names` that the architecture uses."""
    own = next(name for name in names if name in config.to_dict())
    setattr(config, own, size)
