"""Transformers classifiers whose outputs follow the label order of the data."""

import re
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig

from tightrope.artifacts.files import read_json
from tightrope.errors import TightropeError, in_foreign_files
from tightrope.model.activations import restore_activation
from tightrope.model.config import (
    OTHER_PROBLEMS,
    PADDING_COUNTS,
    SINGLE_LABEL,
    is_classifier,
    order_by_name,
    output_names,
    output_order,
    require_names,
    require_same_places,
    unusable_head,
)
from tightrope.model.pruning import load_sized
from tightrope.signature import IMAGE


def load_classifier(
    folder: Path,
    *,
    source: str,
    task: str,
    labels: list[str] | None,
    names: list[str] | None = None,
    new_head: bool,
    seed: int,
) -> Any:
    """Load the fp32 model in `folder` with one output per label, in the order of `labels`.

    A missing or mismatched head is initialized from `seed` if `new_head` allows it; otherwise it is
    an error. Without labels the model keeps its head, or gets a new head with two outputs. `names`
    are those of the checkpoint's outputs, in their order, in the place of its own.
    """
    with in_foreign_files(f"{source}: config.json cannot be used", "save the model again"):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    if not is_classifier(config.to_dict()):
        labels = labels or ["0", "1"]
    fits = head_fits(config, labels, names, new_head=new_head, source=source)
    changes = {} if fits else label_fields(labels or [])
    torch.manual_seed(seed)
    with in_foreign_files(f"{source}: transformers cannot load it", "save the model again"):
        model, info = load_sized(
            folder,
            config,
            images=task == IMAGE,
            dtype=torch.float32,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **changes,
        )
    require_loaded(source, model, info, fits=fits)
    restore_activation(model)
    if model.config.problem_type in OTHER_PROBLEMS:
        model.config.problem_type = SINGLE_LABEL
    if names is not None:
        require_names(source, names, model.config.num_labels)
        if labels:
            permute_outputs(model, output_order(source, names, labels))
        model.config.update(label_fields(labels or names))
    elif fits and labels:
        own = output_names(source, read_json(folder / "config.json", dict[str, Any]), len(labels))
        if (order := order_by_name(own, labels)) is not None:
            permute_outputs(model, order)
        elif not new_head:
            require_same_places(source, own, labels)
        model.config.update(label_fields(labels))
    model.eval()
    if task != IMAGE:
        require_masked_padding(model, source)
    return model


def require_loaded(source: str, model: Any, info: dict[str, Any], *, fits: bool) -> None:
    """Raise TightropeError for weights that are missing, of other sizes, or left over."""
    body, absent = f"{model.base_model_prefix}.", info["missing_keys"]
    sizes = [name for name, *_ in info["mismatched_keys"] if fits or name.startswith(body)]
    more = [name for name in info["unexpected_keys"] if re.match(body + r".*\.\d+\..*weight", name)]
    wrong = {
        "lacks the weights": absent if fits or 2 * len(absent) > len(model.state_dict()) else [],
        "has other sizes than config.json for": sizes,
        "has weights of layers or adapters that config.json has not:": more if fits else [],
    }
    for words, names in wrong.items():
        if names:
            shown = f"model.safetensors {words} {', '.join(sorted(names)[:3])}"
            raise TightropeError(f"{source}: {shown}; save it again")


def head_fits(
    config: Any, labels: list[str] | None, names: list[str] | None, *, new_head: bool, source: str
) -> bool:
    """Return whether the checkpoint has a head with one output per label.

    Raises TightropeError if it has none and `new_head` allows no other, or forgets `names`.
    """
    fields = config.to_dict()
    if not new_head and (reason := unusable_head(fields)):
        raise TightropeError(f"{source}: {reason}")
    fits = is_classifier(fields) and (labels is None or config.num_labels == len(labels))
    if not fits and not new_head:
        raise TightropeError(
            f"{source}: has {config.num_labels} outputs, the data has {len(labels or [])} labels "
            f"({', '.join((labels or [])[:5])}); choose data that fits, or give the model a train "
            "recipe"
        )
    if not fits and names is not None:
        raise TightropeError(
            f"{source}: labels names the outputs of the checkpoint, but it gets a new head, whose "
            "outputs are the labels of the data; remove labels"
        )
    return fits


def require_masked_padding(model: Any, source: str) -> None:
    """Raise TightropeError if masked padding after a text changes the model's logits.

    Some decoders find the last token by `pad_token_id` instead of the mask; batches are padded with
    zeros.
    """
    tokens = min(4, (getattr(model.config, "max_position_embeddings", None) or 8) // 2)
    ids = torch.arange(1, tokens + 1)[None] % model.config.vocab_size
    mask = torch.ones_like(ids)
    padding = torch.zeros_like(ids)
    with torch.inference_mode():
        unpadded = model(input_ids=ids, attention_mask=mask).logits
        padded = model(
            input_ids=torch.cat([ids, padding], 1), attention_mask=torch.cat([mask, padding], 1)
        ).logits
    if (unpadded - padded).abs().max() > 1e-3 * unpadded.abs().max():
        raise TightropeError(f"{source}: {PADDING_COUNTS}")


def label_fields(labels: list[str]) -> dict[str, Any]:
    """Return the fields of a transformers config that name the outputs."""
    return {
        "num_labels": len(labels),
        "id2label": dict(enumerate(labels)),
        "label2id": {label: number for number, label in enumerate(labels)},
    }


def permute_outputs(model: Any, order: list[int]) -> None:
    """Put output `order[i]` of the classifier in the place of output i."""
    head = output_layer(model)
    with torch.no_grad():
        head.weight.copy_(head.weight[order])
        if head.bias is not None:
            head.bias.copy_(head.bias[order])


def output_layer(model: Any) -> torch.nn.Linear:
    """Return the last linear layer with one output per label."""
    layers = [
        layer
        for layer in model.modules()
        if isinstance(layer, torch.nn.Linear) and layer.out_features == model.config.num_labels
    ]
    if not layers:
        raise TightropeError(f"{type(model).__name__}: its output layer was not found")
    return layers[-1]
