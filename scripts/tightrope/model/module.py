"""Trained classifier as a PyTorch module, with helpers shared by its engines."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.errors import ArtifactError
from tightrope.inputs.arrays import TOKENS, Arrays, example_of
from tightrope.model.activations import restore_activation
from tightrope.model.pruning import load_sized
from tightrope.signature import SEQUENCE, Signature

# transformers imports these if installed; no classifier needs them, and they take half a second
UNUSED = ("torchao", "scipy", "sklearn")
DTYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}


class TextLogits(torch.nn.Module):
    """Transformers text classifier that returns the logits tensor itself."""

    def __init__(self, classifier: torch.nn.Module) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return logits [batch, classes]."""
        return self.classifier(input_ids=input_ids, attention_mask=attention_mask).logits


class ImageLogits(torch.nn.Module):
    """Transformers image classifier that returns the logits tensor itself."""

    def __init__(self, classifier: Any) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        """Return logits [batch, classes] for fp32 pixels, for any dtype of the weights."""
        return self.classifier(pixel_values=pixel_values.to(self.classifier.dtype)).logits


def logits_only(classifier: torch.nn.Module) -> torch.nn.Module:
    """Wrap `classifier` in evaluation mode: inputs by name, output the logits tensor."""
    images = classifier.main_input_name == "pixel_values"
    return (ImageLogits if images else TextLogits)(classifier).eval()


def load_module(
    folder: Path, dtype: torch.dtype, *, attention: str | None = None
) -> torch.nn.Module:
    """Load the classifier in `folder` in evaluation mode; safetensors only, no remote code.

    Attention is fused if the model class supports it, unless `attention` is `eager`.
    """
    # torchao, which transformers imports if it is installed, warns about its GPU kernels
    for name in ("transformers", "torchao", "torch.utils._pytree"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        with hidden(*UNUSED):
            from transformers import AutoConfig

            files = {"trust_remote_code": False, "local_files_only": True}
            config = AutoConfig.from_pretrained(folder, **files)
            images = config.architectures[0].endswith("ForImageClassification")
            options = {"dtype": dtype, "attn_implementation": attention, "use_safetensors": True}
            module = load_sized(folder, config, images=images, **options, **files)
    except (SafetensorError, OSError) as error:
        raise ArtifactError(f"{folder}: the weights cannot be read ({error})") from error
    restore_activation(module)
    return module.eval()


@contextmanager
def hidden(*libraries: str) -> Iterator[None]:
    """Make those of `libraries` that are not imported yet appear as not installed.

    Not once transformers is imported: it remembers which libraries it has found, and then fails to
    import those.
    """
    known = "transformers" in sys.modules
    names = [name for name in libraries if name not in sys.modules and not known]
    sys.modules.update(dict.fromkeys(names))  # type: ignore[arg-type]  # stub lacks None
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]


def logits_module(
    checkpoint: Path, dtype: torch.dtype, *, attention: str | None = None
) -> torch.nn.Module:
    """Verify the files of manifest `checkpoint` and load its classifier as a logits module."""
    read_manifest(checkpoint, CheckpointManifest)
    return logits_only(load_module(checkpoint.parent, dtype, attention=attention))


def example_inputs(
    input_signature: Signature, batch: int, tokens: int = TOKENS, *, device: str = "cpu"
) -> dict[str, torch.Tensor]:
    """Return inputs of ones for tracing or compiling, one tensor per input of the signature."""
    # separate tensors, because the exporter merges inputs that share one tensor
    arrays = example_of(input_signature, batch, tokens)
    return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}


def dynamic_shapes(input_signature: Signature, max_sequence: int | None = None) -> dict[str, Any]:
    """Return the dynamic axes of each input for torch.export, sequence up to `max_sequence`."""
    limits = {SEQUENCE: max_sequence}
    sizes = [torch.export.Dim(axis, max=limits.get(axis)) for axis in input_signature.free]
    return {tensor.name: dict(enumerate(sizes)) for tensor in input_signature.inputs}


def runner(module: Callable[..., torch.Tensor]) -> Callable[[Arrays], Any]:
    """Return `run(inputs) -> float32 logits [batch, classes]`, numpy, for a logits module."""

    def run(inputs: Arrays) -> Any:
        with torch.inference_mode():
            tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
            return module(**tensors).float().numpy()

    return run
