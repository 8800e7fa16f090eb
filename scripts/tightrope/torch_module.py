"""The trained classifier of a model as a PyTorch module."""

import logging
from pathlib import Path

import torch
from safetensors import SafetensorError

from tightrope.errors import ArtifactError


def load_module(folder: Path, dtype: torch.dtype, *, attention: str = "sdpa") -> torch.nn.Module:
    """The classifier in `folder`, in evaluation mode; safetensors only, no remote code."""
    from transformers import AutoModelForSequenceClassification

    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        module = AutoModelForSequenceClassification.from_pretrained(
            folder,
            dtype=dtype,
            attn_implementation=attention,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
        )
    except (SafetensorError, OSError) as error:
        raise ArtifactError(f"{folder}: the weights cannot be read ({error})") from error
    return module.eval()
