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
from typing import Any, NamedTuple, Self, TypedDict

import torch
from msgspec import Struct

from tightrope.artifacts.content import read_artifact
from tightrope.errors import ArtifactError, TightropeError
from tightrope.model.activations import swap_activation
from tightrope.model.structures import in_proportion

FIELD, INNER, HEADS = "tightrope_sizes", "inner", "heads"
# neurons of a block of ConvNeXt per channel
EXPANSION = 4
NO_NEURONS = "has no known feed-forward layer"
NO_HEADS = "has no attention of a known form; heads of BERT, RoBERTa and DistilBERT are pruned yet"
# arguments of `prune` that are too long for a manifest
LISTS = ("neurons", "kept_heads")
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
HEAD_COUNTS, ALL_HEADS = ("num_attention_heads", "n_heads"), "all_head_size"


class Channels(NamedTuple):
    """Neurons of a feed-forward layer, or heads of an attention: channels in groups of `size`.

    They are what the products `into` them give, of an attention queries, keys and values, and what
    the one `out` of them reads. A neuron is one channel; heads belong to an `attention`.
    """

    into: list[torch.nn.Linear]
    out: torch.nn.Linear
    size: int = 1
    attention: Any = None

    @property
    def number(self) -> int:
        """Return the number of neurons or heads."""
        return self.out.in_features // self.size

    @property
    def weights(self) -> int:
        """Return the number of weights of a neuron or head."""
        into = sum(one.in_features + (one.bias is not None) for one in self.into)
        return self.size * (into + self.out.out_features)

    def largest(self, count: int) -> list[int]:
        """Return so many with the largest product of the norms of their weights, in and out.

        Those into a head are of its values.
        """
        values = self.into[-1].weight.detach().reshape(self.number, -1)
        columns = self.out.weight.detach().T.reshape(self.number, -1)
        importance = values.norm(dim=1) * columns.norm(dim=1)
        return importance.topk(count).indices.sort().values.tolist()

    def keep(self, kept: Sequence[int]) -> None:
        """Remove all but these, counted from 0, from the products."""
        channels = [one * self.size + channel for one in kept for channel in range(self.size)]
        for product in self.into:
            product.weight = torch.nn.Parameter(product.weight.detach()[channels])
            if product.bias is not None:
                product.bias = torch.nn.Parameter(product.bias.detach()[channels])
            product.out_features = len(channels)
        self.out.weight = torch.nn.Parameter(self.out.weight.detach()[:, channels])
        self.out.in_features = len(channels)
        for name in (*HEAD_COUNTS, ALL_HEADS):
            if hasattr(self.attention, name):
                setattr(self.attention, name, len(channels if name == ALL_HEADS else kept))


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
    return next(iter(stage_widths(model)), None)


def stage_widths(model: Any) -> list[int]:
    """Return the neurons of a block of each stage; none where `width_of` is None."""
    firsts = [blocks[0] for blocks in stages_of(model)]
    if layers_in(model) is None and None in map(neurons_in, firsts):
        return []
    return [feed_forward_of(block).number for block in firsts]


def feed_forward_of(block: torch.nn.Module) -> Channels:
    """Return the neurons of a block; raise TightropeError for one of another form."""
    found = neurons_in(block)
    if found is None:
        raise TightropeError(f"prune.intermediate: {type(block).__name__} has no known layers")
    return found


def neurons_in(layer: torch.nn.Module) -> Channels | None:
    """Return the neurons of the feed-forward layer of a block, None for one of another form."""
    if module_at(layer, NORMALIZED) is not None:
        return None
    for places in FEED_FORWARD:
        into, out = (module_at(layer, place) for place in places)
        if isinstance(into, torch.nn.Linear) and isinstance(out, torch.nn.Linear):
            return Channels([into], out)
    return None


def heads_in(layer: torch.nn.Module) -> Channels | None:
    """Return the heads of a layer, None for attention of another form."""
    for place, products, last in ATTENTION:
        attention, out = module_at(layer, place), module_at(layer, last)
        into = [module_at(attention, name) for name in products]
        size = module_at(attention, "attention_head_size")
        if size and all(isinstance(one, torch.nn.Linear) for one in (*into, out)):
            return Channels(into, out, int(size), attention)
    return None


def neurons_of(model: Any) -> list[list[Channels]]:
    """Return the neurons of each block of each stage; none where `width_of` is None."""
    if not stage_widths(model):
        return []
    return [[feed_forward_of(block) for block in blocks] for blocks in stages_of(model)]


def heads_of(model: Any) -> list[Channels]:
    """Return the heads of each layer, none where they are not found."""
    layers = layers_in(model)
    found = [heads_in(layer) for layer in (() if layers is None else layers)]
    return [heads for heads in found if heads is not None]


def head_count(model: Any) -> int | None:
    """Return the heads of each layer, None where they are not found."""
    return next((heads.number for heads in heads_of(model)), None)


def module_at(module: Any, place: str) -> Any:
    """Return the module at a place with dots, None where there is none."""
    for name in place.split("."):
        module = getattr(module, name, None)
    return module


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
    first = require_some(model, "intermediate", width, width_of(model), NO_NEURONS)
    for number, own in enumerate(own for blocks in neurons_of(model) for own in blocks):
        count = in_proportion(own.number, width, first)
        own.keep(own.largest(count) if neurons is None else neurons[number])
    if layers_in(model) is not None:
        set_size(model.config, WIDTH, width)


def keep_heads(model: Any, count: int, kept: Sequence[Sequence[int]] | None = None) -> None:
    """Keep so many heads of each layer, see `prune`, or these, `kept`, of each layer."""
    require_some(model, "heads", count, head_count(model), NO_HEADS)
    for number, heads in enumerate(heads_of(model)):
        heads.keep(heads.largest(count) if kept is None else kept[number])


def require_some(model: Any, key: str, count: int, whole: int | None, lacks: str) -> int:
    """Return `whole`, of which `count` are kept; raise TightropeError where that cannot be."""
    if whole is None:
        raise TightropeError(f"prune.{key} = {count}: {type(model.base_model).__name__} {lacks}")
    if not 0 < count <= whole:
        raise TightropeError(f"prune.{key} = {count}: keep 1 to {whole}, which are there")
    return whole


def set_size(config: Any, names: Sequence[str], size: int) -> None:
    """Set the size in config.json, under the first of `names` that the architecture uses."""
    own = next(name for name in names if name in config.to_dict())
    setattr(config, own, size)


def evenly(count: int, total: int) -> list[int]:
    """Return `count` of `total` indices at even distances, the last one among them."""
    return [round((number + 1) * total / count) - 1 for number in range(count)]


def note_sizes(model: Any) -> None:
    """Note in config.json the sizes of the model that no other field there tells."""
    if layers_in(model) is not None:
        heads = next(iter(heads_of(model)), None)
        if heads is not None and heads.out.in_features != heads.into[0].in_features:
            setattr(model.config, FIELD, {HEADS: heads.number})
        return
    firsts = [neurons[0] for neurons in neurons_of(model)]
    if any(own.number != EXPANSION * own.into[0].in_features for own in firsts):
        setattr(model.config, FIELD, {INNER: [own.number for own in firsts]})


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
    encoder = layers_in(model) is not None
    name, parts = (HEADS, [heads_of(model)]) if encoder else (INNER, neurons_of(model))
    sizes: Any = noted.get(name) if isinstance(noted, dict) and set(noted) == {name} else None
    if encoder:
        sizes = [sizes]
    if not (
        parts
        and isinstance(sizes, list)
        and len(sizes) == len(parts)
        and all(parts)
        and all(type(size) is int for size in sizes)
        and all(0 < size <= part[0].number for size, part in zip(sizes, parts, strict=True))
    ):
        raise ArtifactError(
            f"{folder}: {FIELD} = {noted} in config.json: {type(model).__name__} has no such "
            "sizes; take the config.json that was saved with the weights"
        )
    for size, part in zip(sizes, parts, strict=True):
        for channels in part:
            channels.keep(range(size))


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


class Changes(Struct, frozen=True):
    """`activation` replaces the checkpoint's; `prune` are the arguments of `prune`.

    `target` is what the rule choose_structure found, where it has chosen what is kept.
    """

    activation: str | None = None
    prune: Mapping[str, Any] = {}
    target: Mapping[str, Any] = {}

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
