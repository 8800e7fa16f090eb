"""What is changed of a model before it is trained or converted: its activation, and what is pruned.

Layers of a transformers encoder or blocks of a ConvNeXt are removed, and neurons of them. What is
left is a model of the same architecture with smaller sizes in its config.json. Those that it has no
field of its own for are noted there in `tightrope_sizes`, as `hidden_sizes` are those of a
ConvNeXt: `inner` are the neurons of the blocks of each stage, `heads` are those of each layer of an
encoder, of the size that config.json gives them. Where nothing of that kind is pruned, config.json
has no such field.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self, TypedDict

from tightrope.artifacts.content import read_artifact
from tightrope.errors import ArtifactError, TightropeError
from tightrope.model.activations import swap_activation
from tightrope.model.blocks import (
    DEPTH,
    DEPTHS,
    LAYERS,
    WIDTH,
    feed_forward_of,
    heads_in,
    heads_of,
    keep_channels,
    keep_heads,
    keep_only_heads,
    layer_heads,
    layers_in,
    set_size,
    stage_widths,
    stages_of,
    width_of,
)
from tightrope.model.structures import in_proportion

FIELD, INNER, HEADS = "tightrope_sizes", "inner", "heads"
# neurons of a block of ConvNeXt per channel
EXPANSION = 4
NOTHING: Mapping[str, Any] = MappingProxyType({})
# arguments of `prune` that are too long for a manifest
LISTS = ("neurons", "kept_heads")


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
    found = stages_of(model)
    if len(found) > 1:
        raise TightropeError(
            f"prune: {type(model.base_model).__name__} has no {' or '.join(LAYERS)}; only encoders "
            "of that form, such as BERT, RoBERTa and DistilBERT, are pruned yet"
        )
    total = len(found[0])
    kept = [*layers] if isinstance(layers, Sequence) else evenly(layers, total)
    if not kept or sorted(set(kept)) != kept or not 0 <= kept[0] <= kept[-1] < total:
        raise TightropeError(
            f"prune.layers = {layers}: {type(model).__name__} has layers 0 to {total - 1}; "
            "name some of them in ascending order, or how many to keep"
        )
    keep_blocks(model, [kept])


def keep_blocks(model: Any, blocks: Sequence[Sequence[int]]) -> None:
    """Keep these blocks of each stage."""
    for stage, kept in zip(stages_of(model), blocks, strict=True):
        for number in reversed(range(len(stage))):
            if number not in kept:
                del stage[number]
    if layers_in(model) is not None:
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
        into, out = feed_forward_of(block)
        if neurons is not None:
            keep_channels([into], out, neurons[number])
            continue
        importance = into.weight.detach().norm(dim=1) * out.weight.detach().norm(dim=0)
        own = in_proportion(into.out_features, width, first)
        keep_channels([into], out, importance.topk(own).indices.sort().values.tolist())
    if layers_in(model) is not None:
        set_size(model.config, WIDTH, width)


def evenly(count: int, total: int) -> list[int]:
    """Return `count` of `total` indices at even distances, the last one among them."""
    return [round((number + 1) * total / count) - 1 for number in range(count)]


def note_sizes(model: Any) -> None:
    """Note in config.json the sizes of the model that no other field there tells."""
    if layers_in(model) is not None:
        heads = heads_in(stages_of(model)[0][0])
        if heads is not None and heads.out.in_features != heads.into[0].in_features:
            setattr(model.config, FIELD, {HEADS: heads.number})
        return
    widths = stage_widths(model)
    products = [feed_forward_of(blocks[0])[0] for blocks in stages_of(model)] if widths else []
    if widths != [EXPANSION * into.in_features for into in products]:
        setattr(model.config, FIELD, {INNER: widths})


def load_sized(folder: Path, config: Any, *, images: bool, **options: Any) -> Any:
    """Return the classifier of images or texts in `folder`, with the noted sizes.

    `config` is that of the folder, `options` are those of `from_pretrained` of transformers. Raises
    ArtifactError for noted sizes that the model cannot have.
    """
    from transformers import AutoModelForImageClassification, AutoModelForSequenceClassification

    kind: Any = AutoModelForImageClassification if images else AutoModelForSequenceClassification
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
    name = HEADS if layers_in(model) is not None else INNER
    sizes: Any = noted.get(name) if isinstance(noted, dict) and set(noted) == {name} else None
    whole: Any = heads_of(model) if name == HEADS else stage_widths(model)
    if not whole or not fits(sizes, whole):
        raise ArtifactError(
            f"{folder}: {FIELD} = {noted} in config.json: {type(model).__name__} has no such "
            "sizes; take the config.json that was saved with the weights"
        )
    if name == HEADS:
        for heads in layer_heads(model):
            keep_only_heads(heads, range(sizes))
        return
    for blocks, width in zip(stages_of(model), sizes, strict=True):
        for into, out in map(feed_forward_of, blocks):
            keep_channels([into], out, range(width))


def fits(sizes: Any, whole: int | list[int]) -> bool:
    """Return whether a size, or one for each stage, is above 0 and not above the `whole`."""
    if isinstance(whole, int):
        return type(sizes) is int and 0 < sizes <= whole
    return (
        isinstance(sizes, list)
        and len(sizes) == len(whole)
        and all(fits(one, most) for one, most in zip(sizes, whole, strict=True))
    )


class Kept(TypedDict, total=False):
    """Arguments of `prune`, as the rule choose_structure writes."""

    layers: int | list[int] | None
    intermediate: int | None
    heads: int | None
    neurons: list[list[int]] | None
    blocks: list[list[int]] | None
    kept_heads: list[list[int]] | None


class Chosen(TypedDict):
    """What a chosen structure keeps, and the target that it was chosen for."""

    prune: Kept
    target: dict[str, Any]


class Changes(NamedTuple):
    """`activation` replaces the checkpoint's; `prune` are the arguments of `prune`.

    `target` is what the rule choose_structure found, where it has chosen what is kept.
    """

    activation: str | None = None
    prune: Mapping[str, Any] = NOTHING
    target: Mapping[str, Any] = NOTHING

    @classmethod
    def of(cls, job: Any) -> Self:
        """Return the changes of a job, see `tightrope.jobs.job.current_job`."""
        chosen = dict(job.input.items()).get("structure")
        if chosen is None:
            return cls(job.settings.activation, job.settings.prune)
        document = read_artifact(chosen, Chosen)
        return cls(job.settings.activation, document["prune"], document["target"])

    def facts(self) -> dict[str, Any]:
        """Return what the manifest of the changed model says of this, without lists of neurons."""
        pruned = {name: kept for name, kept in self.prune.items() if name not in LISTS}
        target = {"target": dict(self.target)} if self.target else {}
        return {"activation": self.activation, "prune": pruned | target}

    def apply(self, model: Any) -> None:
        """Change the model; raise TightropeError where it cannot be pruned so."""
        if any(kept is not None for kept in self.prune.values()):
            prune(model, **self.prune)
        if self.activation is not None:
            swap_activation(model, self.activation)
