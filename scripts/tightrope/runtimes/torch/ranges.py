"""Export a classifier for the range of shapes of a TensorRT optimization profile."""

from typing import Any

import torch

from tightrope.model.module import TextLogits, example_inputs
from tightrope.runtimes.tensorrt.profiles import Profile
from tightrope.signature import Signature

# inputs by name on a device
Inputs = dict[str, torch.Tensor]


class ZeroTokenTypes(TextLogits):
    """Text classifier that is given its token types, all 0.

    BERT and its kin otherwise gather them from a buffer, which Torch-TensorRT cannot convert with
    free sizes: the model would be in two parts.
    """

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return logits [batch, classes]."""
        types = torch.zeros_like(input_ids)
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        return self.classifier(**inputs, token_type_ids=types).logits


def without_gathers(module: torch.nn.Module) -> torch.nn.Module:
    """Return a logits module without a gather of token types, which are 0 by default."""
    if not isinstance(module, TextLogits):
        return module
    classifier: Any = module.classifier
    types = getattr(classifier.config, "type_vocab_size", 0)
    return ZeroTokenTypes(classifier).eval() if types else module


def example_within(input_signature: Signature, profile: Profile, device: str) -> Inputs:
    """Return inputs of ones to export at, of the shape that the profile is tuned for.

    The exporter would fix a size of 1, so a free axis has at least 2.
    """
    sides = zip(profile.min, profile.opt, profile.max, strict=True)
    sizes = [best if least == most else max(best, 2) for least, best, most in sides]
    return example_inputs(input_signature, sizes[0], sizes[-1], device)


def axes_within(input_signature: Signature, profile: Profile) -> dict[str, Any]:
    """Return the axes of each input for torch.export, with the range of the profile.

    An axis of a single size is fixed.
    """
    sides = zip(input_signature.free, profile.min, profile.max, strict=True)
    axes = [
        None if least == most else torch.export.Dim(axis, min=least, max=most)
        for axis, least, most in sides
    ]
    return {tensor.name: dict(enumerate(axes)) for tensor in input_signature.inputs}
