"""PyTorch eager: what every other engine is compared with."""

from collections import Counter
from pathlib import Path
from typing import Any

import torch

from tightrope.inputs import Arrays
from tightrope.manifest import read_manifest
from tightrope.torch_module import load_module

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def build(source: Path, target: Path, *, precision: str, threads: int) -> dict[str, Any]:
    """Write the checkpoint's weights in that type into folder `target`; see `load`."""
    read_manifest(source)
    module = load_module(source.parent, DTYPES[precision])
    module.save_pretrained(target)
    return {"format": "safetensors", "executed": executed(module)}


def load(path: Path, *, precision: str, threads: int) -> Any:
    """`run(inputs) -> float32 logits [batch, classes]` for any batch and sequence."""
    torch.set_num_threads(threads)
    module = load_module(path, DTYPES[precision])

    def run(inputs: Arrays) -> Any:
        with torch.inference_mode():
            tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
            return module(**tensors).logits.float().numpy()

    return run


def executed(module: torch.nn.Module) -> dict[str, dict[str, int]]:
    """How many layers of each class with weights compute in which type."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    counts: dict[str, Counter[str]] = {}
    for layer in module.modules():
        weight = getattr(layer, "weight", None)
        if isinstance(weight, torch.nn.Parameter):
            kind = counts.setdefault(type(layer).__name__, Counter())
            kind[names.get(weight.dtype, str(weight.dtype))] += 1
    return {kind: dict(count) for kind, count in sorted(counts.items())}
