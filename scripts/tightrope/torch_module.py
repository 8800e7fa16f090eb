"""The trained classifier of a model as a PyTorch module, and what its engines have in common."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from tightrope.errors import ArtifactError
from tightrope.inputs import INPUTS, Arrays
from tightrope.manifest import read_manifest

DTYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}


class LogitsOnly(torch.nn.Module):
    """A transformers classifier whose output is the logits tensor itself."""

    def __init__(self, classifier: torch.nn.Module) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Logits [batch, classes]."""
        return self.classifier(input_ids=input_ids, attention_mask=attention_mask).logits


def load_module(folder: Path, dtype: torch.dtype, *, attention: str = "sdpa") -> torch.nn.Module:
    """The classifier in `folder`, in evaluation mode; safetensors only, no remote code."""
    # torchao, which transformers imports where it is installed, warns of its kernels for GPUs
    for name in ("transformers", "torchao", "torch.utils._pytree"):
        logging.getLogger(name).setLevel(logging.ERROR)
    from transformers import AutoModelForSequenceClassification

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


def logits_module(checkpoint: Path, dtype: torch.dtype, *, attention: str = "sdpa") -> LogitsOnly:
    """The classifier beside manifest `checkpoint`, whose files are verified; it gives logits."""
    read_manifest(checkpoint)
    return LogitsOnly(load_module(checkpoint.parent, dtype, attention=attention)).eval()


def example_inputs(batch: int, sequence: int, device: str = "cpu") -> dict[str, torch.Tensor]:
    """Tokens to trace or compile with, int64 [batch, sequence], a tensor for each input."""
    # the exporter takes one tensor given twice for one input
    shape = (batch, sequence)
    return {name: torch.ones(shape, dtype=torch.int64, device=device) for name in INPUTS}


def dynamic_shapes(max_sequence: int | None = None) -> dict[str, Any]:
    """For torch.export: batch and sequence of both inputs are free, up to `max_sequence`."""
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence", max=max_sequence)}
    return dict.fromkeys(INPUTS, axes)


def runner(module: Callable[..., torch.Tensor]) -> Callable[[Arrays], Any]:
    """`run(inputs) -> float32 logits [batch, classes]`, numpy, of a module that gives logits."""

    def run(inputs: Arrays) -> Any:
        with torch.inference_mode():
            tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
            return module(**tensors).float().numpy()

    return run
