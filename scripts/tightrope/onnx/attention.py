"""Attention in the form that is exported: an additive mask, scaled queries.

The eager attention of transformers indexes a boolean mask into [batch, 1, sequence, sequence]
(GatherND, Range, Expand) and scales the scores, [batch, heads, sequence, sequence]. Both cost every
runtime time at each call. Here the mask is [batch, 1, 1, sequence], and the query is scaled, so
that `onnx.scales` can fold the scale into the weights of its linear layer.
"""

from typing import Any

import torch

NAME = "exported"
# half of float16's range: no sum with a score is infinite in any float type, and after a softmax in
# float32 a masked token weighs exactly 0
MASKED = torch.finfo(torch.float16).min / 2


def register_attention() -> str:
    """Make this attention known to transformers; return its name for `attn_implementation`."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, additive_mask)
    return NAME


def additive_mask(
    *, attention_mask: torch.Tensor | None = None, mask_function: Any, **sizes: Any
) -> torch.Tensor:
    """Return 0 for tokens and MASKED for padding, [batch, 1, 1, sequence].

    `attention_mask` is bool [batch, sequence]. Where it is not the whole mask, as with a sliding
    window, return the mask of eager attention, [batch, 1, sequence, sequence].
    """
    from transformers.masking_utils import bidirectional_mask_function, eager_mask

    if mask_function is not bidirectional_mask_function or attention_mask is None:
        return eager_mask(attention_mask=attention_mask, mask_function=mask_function, **sizes)
    return (1.0 - attention_mask[:, None, None, :].to(sizes["dtype"])) * MASKED


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Return attention [batch, sequence, heads, width] of tensors [batch, heads, sequence, width].

    The signature is that of transformers' attention functions.
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = torch.matmul(query * scale, key.transpose(2, 3))
    if attention_mask is not None:
        scores = scores + attention_mask
    mixed = torch.matmul(torch.softmax(scores, dim=-1), value)
    return mixed.transpose(1, 2).contiguous(), None
