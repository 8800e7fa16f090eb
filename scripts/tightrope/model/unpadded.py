"""Text classifiers whose encoder computes no padding, with FlashAttention. Not run on a GPU yet.

Between embeddings and head the tokens of all texts are one row, [1, tokens, width]; attention gets
where each text begins, as `flash_attn_varlen_func` does (T. Dao, FlashAttention-2, 2023). It waits
for the GPU once a call, for the number of tokens, so no CUDA graph can hold it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

from tightrope.errors import WorkFailed

NAME = "tightrope_unpadded"
# whose encoder sees positions in its embeddings alone -> where it stands in the model
ENCODERS = dict.fromkeys(("bert", "roberta", "xlm-roberta", "camembert", "electra"), "encoder")
ENCODERS |= {"distilbert": "transformer"}
# FlashAttention computes in these alone
PRECISIONS = ("bf16", "fp16")


class Rows(NamedTuple):
    """Where each text lies in a row of tokens; it takes the place of the attention mask."""

    # bool [batch, sequence]
    mask: torch.Tensor
    # int32 [batch + 1]
    starts: torch.Tensor


# takes query, key and value [tokens, heads, width], where texts begin and the most tokens, twice
Attention = Callable[..., Any]


def unpadded(module: Any, attention: Attention) -> Any:
    """Let the encoder of a `TextLogits` skip padding; `attention` is PyTorch's `varlen_attn`.

    Raises WorkFailed for a model whose encoder is not known.
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    classifier = module.classifier
    kind = classifier.config.model_type
    if kind not in ENCODERS:
        raise WorkFailed(
            f"attention: varlen knows the encoders of {', '.join(ENCODERS)}, not of {kind}; take "
            "auto",
            transient=False,
        )
    AttentionInterface.register(NAME, partial(attend, attention))
    AttentionMaskInterface.register(NAME, lambda *, attention_mask, **_: attention_mask)
    classifier.set_attn_implementation(NAME)
    encoder = getattr(classifier.base_model, ENCODERS[kind])
    encoder.register_forward_pre_hook(pack, with_kwargs=True)
    encoder.register_forward_hook(pad, with_kwargs=True)
    return module


def pack(
    _: torch.nn.Module, given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Put the tokens of [batch, sequence, width] into one row before the encoder."""
    mask = named["attention_mask"].bool()
    starts = torch.nn.functional.pad(mask.sum(1).cumsum(0), (1, 0)).int()
    hidden = given[0] if given else named["hidden_states"]
    row, rest = hidden[mask][None], {**named, "attention_mask": Rows(mask, starts)}
    return ((row, *given[1:]), rest) if given else ((), {**rest, "hidden_states": row})


def pad(_: torch.nn.Module, given: Any, named: dict[str, Any], output: Any) -> Any:
    """Put the tokens back into [batch, sequence, width] after the encoder, zeros for padding."""
    row, mask = output.last_hidden_state, named["attention_mask"].mask
    whole = row.new_zeros(*mask.shape, row.shape[-1])
    whole[mask] = row[0]
    output.last_hidden_state = whole
    return output


def attend(
    attention: Attention,
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    rows: Rows,
    scaling: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Return attention [1, tokens, heads, width] of tensors [1, heads, tokens, width].

    The signature, from `module` on, is that of transformers' attention functions.
    """
    packed = (one[0].transpose(0, 1) for one in (query, key, value))
    longest = rows.mask.shape[1]
    found = attention(*packed, rows.starts, rows.starts, longest, longest, scale=scaling)
    return found[None], None
