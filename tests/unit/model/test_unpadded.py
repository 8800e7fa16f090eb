"""The encoder without padding: the same answers, from the tokens alone."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from pruned_models import model_of, text_batch
from tightrope.errors import WorkFailed
from tightrope.model.module import logits_only
from tightrope.model.unpadded import ENCODERS, unpadded


def one_by_one(query: Any, key: Any, value: Any, starts: Any, *_: Any, scale: Any) -> Any:
    """What `varlen_attn` computes on a GPU, in fp32 too."""
    texts = pairwise(starts)
    rows = [[one[a:b].transpose(0, 1) for one in (query, key, value)] for a, b in texts]
    attend: Any = torch.nn.functional.scaled_dot_product_attention
    return torch.cat([attend(*row, scale=scale).transpose(0, 1) for row in rows])


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta"])
def test_answers_are_those_with_padding_and_the_encoder_sees_no_padding(kind: str) -> None:
    module: Any = logits_only(model_of(kind))
    inputs, _ = text_batch()
    # roberta numbers positions by the padding token
    inputs["input_ids"][2, 5:] = module.classifier.config.pad_token_id or 0
    with torch.inference_mode():
        expected, seen = module(**inputs), []
        found = unpadded(module, one_by_one)
        encoder = getattr(module.classifier.base_model, ENCODERS[kind])
        encoder.layer[0].register_forward_pre_hook(lambda _, given: seen.append(given[0].shape))
        torch.testing.assert_close(found(**inputs), expected, rtol=1e-5, atol=1e-6)
    assert seen == [(1, int(inputs["attention_mask"].sum()), 16)]


def test_an_encoder_that_sees_positions_elsewhere_is_refused() -> None:
    with pytest.raises(WorkFailed, match=r"not of convnext; take auto"):
        unpadded(logits_only(model_of("convnext")), one_by_one)
