"""Sizes of a pruned model that its config.json has no field for, noted in one of its own there.

`tightrope_sizes` holds them as `hidden_sizes` does those of a ConvNeXt: `inner` are the neurons of
the blocks of each stage; `heads` are those of each layer of an encoder, of the size that
config.json gives them. Where nothing of that kind is pruned, config.json has no such field.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tightrope.errors import ArtifactError
from tightrope.model.attention_heads import heads_in, heads_of, keep_only_heads, layer_heads
from tightrope.model.blocks import feed_forward_of, has_layers, stage_widths, stages_of

FIELD, INNER, HEADS = "tightrope_sizes", "inner", "heads"
# neurons of a block of ConvNeXt per channel
EXPANSION = 4


def note_sizes(model: Any) -> None:
    """Note in config.json the sizes of the model that no other field there tells."""
    if has_layers(model):
        heads = heads_in(stages_of(model)[0][0])
        if heads is not None and heads.out.in_features != heads.into[0].in_features:
            setattr(model.config, FIELD, {HEADS: heads.number})
        return
    widths = stage_widths(model)
    products = [feed_forward_of(blocks[0])[0] for blocks in stages_of(model)] if widths else []
    if widths != [EXPANSION * into.in_features for into in products]:
        setattr(model.config, FIELD, {INNER: widths})


def load_sized(kind: Any, folder: Path, config: Any, **options: Any) -> Any:
    """Return what `kind.from_pretrained(folder, **options)` does, with the noted sizes.

    `kind` is a class of transformers such as AutoModelForImageClassification, `config` that of the
    folder. Raises ArtifactError for noted sizes that the model cannot have.
    """
    noted = getattr(config, FIELD, None)
    if noted is None:
        return kind.from_pretrained(folder, **options)
    from transformers.models.auto.auto_factory import _get_model_class

    # what from_pretrained itself does
    architecture = _get_model_class(config, kind._model_mapping)

    def build(self: Any, *arguments: Any, **keywords: Any) -> None:
        architecture.__init__(self, *arguments, **keywords)
        resize(self, noted, folder)

    names = {name: getattr(architecture, name) for name in ("__module__", "__qualname__")}
    smaller: Any = type(architecture.__name__, (architecture,), {"__init__": build, **names})
    found = smaller.from_pretrained(folder, **options)
    (found[0] if isinstance(found, tuple) else found).__class__ = architecture
    return found


def resize(model: Any, noted: Any, folder: Path) -> None:
    """Give the modules of a model the noted sizes, with weights that are loaded afterwards."""
    name = HEADS if has_layers(model) else INNER
    sizes: Any = noted.get(name) if isinstance(noted, dict) and set(noted) == {name} else None
    whole: Any = heads_of(model) if name == HEADS else stage_widths(model)
    if not whole or not fits(sizes, whole):
        raise ArtifactError(
            f"{folder}: {FIELD} = {noted} in config.json: {type(model).__name__} has no such "
            "sizes; take the config.json that was saved with the weights"
        )
    (resize_heads if name == HEADS else resize_inner)(model, sizes)


def resize_heads(model: Any, count: int) -> None:
    """Leave the first heads of each layer."""
    for heads in layer_heads(model):
        keep_only_heads(heads, range(count))


def resize_inner(model: Any, inner: Sequence[int]) -> None:
    """Leave the first neurons of the blocks of each stage."""
    for blocks, width in zip(stages_of(model), inner, strict=True):
        for block in blocks:
            into, out = feed_forward_of(block)
            into.weight, into.bias = first(into.weight, width), first(into.bias, width)
            out.weight = torch.nn.Parameter(out.weight.detach()[:, :width].clone())
            into.out_features = out.in_features = width


def fits(sizes: Any, whole: int | list[int]) -> bool:
    """Return whether a size, or one for each stage, is above 0 and not above the `whole`."""
    if isinstance(whole, int):
        return type(sizes) is int and 0 < sizes <= whole
    return (
        isinstance(sizes, list)
        and len(sizes) == len(whole)
        and all(fits(one, most) for one, most in zip(sizes, whole, strict=True))
    )


def first(weight: torch.Tensor, rows: int) -> torch.nn.Parameter:
    """Return the first rows of a weight as a parameter of its own."""
    return torch.nn.Parameter(weight.detach()[:rows].clone())
