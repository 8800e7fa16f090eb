"""Tiny models with random weights, to be pruned."""

from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForImageClassification,
    AutoModelForSequenceClassification,
)

SIZES: dict[str, dict[str, Any]] = {
    "bert": {
        **{"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2},
        **{"intermediate_size": 32, "vocab_size": 50, "max_position_embeddings": 16},
    },
    # more than one width to choose from
    "wide_bert": {
        **{"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2},
        **{"intermediate_size": 160, "vocab_size": 50, "max_position_embeddings": 16},
    },
    "distilbert": {
        **{"dim": 16, "n_layers": 4, "n_heads": 2, "hidden_dim": 32},
        **{"vocab_size": 50, "max_position_embeddings": 16},
    },
    "roberta": {
        **{"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2},
        **{"intermediate_size": 32, "vocab_size": 50, "max_position_embeddings": 18},
    },
    "convnext": {
        **{"hidden_sizes": [8, 16, 24, 32], "depths": [1, 2, 3, 1], "num_stages": 4},
        **{"image_size": 32, "layer_scale_init_value": 1.0},
    },
}
TOKENS = torch.arange(2, 10)[None]


def model_of(kind: str) -> Any:
    """A classifier of that architecture in evaluation mode."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind.removeprefix("wide_"), **SIZES[kind])
    images = kind == "convnext"
    auto = AutoModelForImageClassification if images else AutoModelForSequenceClassification
    return auto.from_config(config).eval()


def logits(model: Any) -> torch.Tensor:
    """Its answers to one text or image."""
    with torch.inference_mode():
        if model.main_input_name == "pixel_values":
            return model(pixel_values=torch.ones(1, 3, 32, 32)).logits
        return model(input_ids=TOKENS, attention_mask=torch.ones_like(TOKENS)).logits


def text_batch() -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Three texts of which one is padded, and their labels."""
    ids = torch.arange(2, 26).reshape(3, 8)
    mask = torch.ones_like(ids)
    ids[2, 5:], mask[2, 5:] = 0, 0
    return {"input_ids": ids, "attention_mask": mask}, torch.tensor([0, 1, 1])
