"""The trained classifier of a model as a PyTorch module, and what its engines have in common."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from tightrope.artifacts.manifest import read_manifest
from tightrope.errors import ArtifactError
from tightrope.inputs.arrays import TOKENS, Arrays, example_of
from tightrope.model.activations import restore_activation
from tightrope.signature import SEQUENCE, Signature

# transformers imports them where they are installed, and no classifier needs them: half a second
UNUSED = ("torchao", "scipy", "sklearn")
DTYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}


class TextLogits(torch.nn.Module):
    """A transformers classifier of texts whose output is the logits tensor itself."""

    def __init__(self, classifier: torch.nn.Module) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Logits [batch, classes]."""
        return self.classifier(input_ids=input_ids, attention_mask=attention_mask).logits


class ImageLogits(torch.nn.Module):
    """A transformers classifier of images whose output is the logits tensor itself."""

    def __init__(self, classifier: torch.nn.Module) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """Logits [batch, classes] of pixels in fp32, whatever the type of the weights."""
        return self.classifier(pixel_values=pixel_values.to(self.classifier.dtype)).logits


def logits_only(classifier: torch.nn.Module) -> torch.nn.Module:
    """`classifier` in evaluation mode, its inputs by name and its output the logits tensor."""
    images = classifier.main_input_name == "pixel_values"
    return (ImageLogits if images else TextLogits)(classifier).eval()


def load_module(
    folder: Path, dtype: torch.dtype, *, attention: str | None = None
) -> torch.nn.Module:
    """The classifier in `folder`, in evaluation mode; safetensors only, no remote code.

    Its attention is fused where its class can do so, unless it is asked for as `eager`.
    """
    # torchao, which transformers imports where it is installed, warns of its kernels for GPUs
    for name in ("transformers", "torchao", "torch.utils._pytree"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        with hidden(*UNUSED):
            module = classifier_in(folder, dtype, attention)
    except (SafetensorError, OSError) as error:
        raise ArtifactError(f"{folder}: the weights cannot be read ({error})") from error
    restore_activation(module)
    return module.eval()


def classifier_in(folder: Path, dtype: torch.dtype, attention: str | None) -> torch.nn.Module:
    """The classifier in `folder` as transformers loads it."""
    from transformers import (
        AutoConfig,
        AutoModelForImageClassification,
        AutoModelForSequenceClassification,
    )

    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    images = config.architectures[0].endswith("ForImageClassification")
    kind = AutoModelForImageClassification if images else AutoModelForSequenceClassification
    return kind.from_pretrained(
        folder,
        dtype=dtype,
        attn_implementation=attention,
        use_safetensors=True,
        trust_remote_code=False,
        local_files_only=True,
    )


@contextmanager
def hidden(*libraries: str) -> Iterator[None]:
    """Meanwhile those of the libraries that are not imported yet are as if not installed."""
    names = [name for name in libraries if name not in sys.modules]
    sys.modules.update(dict.fromkeys(names))
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]


def logits_module(
    checkpoint: Path, dtype: torch.dtype, *, attention: str | None = None
) -> torch.nn.Module:
    """The classifier beside manifest `checkpoint`, whose files are verified; it gives logits."""
    read_manifest(checkpoint)
    return logits_only(load_module(checkpoint.parent, dtype, attention=attention))


def example_inputs(
    taken: Signature, batch: int, tokens: int = TOKENS, device: str = "cpu"
) -> dict[str, torch.Tensor]:
    """Ones to trace or compile with, a tensor for each input of that signature."""
    # the exporter takes one tensor given twice for one input
    arrays = example_of(taken, batch, tokens)
    return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}


def dynamic_shapes(taken: Signature, max_sequence: int | None = None) -> dict[str, Any]:
    """For torch.export: the free axes of each input, a sequence up to `max_sequence`."""
    limits = {SEQUENCE: max_sequence}
    sizes = [torch.export.Dim(axis, max=limits.get(axis)) for axis in taken.free]
    return {one.name: dict(enumerate(sizes)) for one in taken.inputs}


def runner(module: Callable[..., torch.Tensor]) -> Callable[[Arrays], Any]:
    """`run(inputs) -> float32 logits [batch, classes]`, numpy, of a module that gives logits."""

    def run(inputs: Arrays) -> Any:
        with torch.inference_mode():
            tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
            return module(**tensors).float().numpy()

    return run
