"""Training recipe: defaults, checks, and resolution of `auto` on this machine."""

from pathlib import Path
from typing import Any

Recipe = dict[str, Any]
# loaded by name, so that only trainings with `qat` depend on it
QUANTIZATION_AWARE = "tightrope/training/quantization_aware"
DEFAULTS: Recipe = {
    "epochs": 1,
    "batch": 32,
    "learning_rate": 2e-4,
    "weight_decay": 0.01,
    "warmup": 0.1,
    "sequence": 64,
    "frozen": [],
    "sparsity": None,
    "compile": False,
    "amp": "auto",
    "channels_last": False,
    "augmentation": "off",
    "device": "auto",
    "seed": None,
    "validate": False,
    "out_of_memory": "stop",
}


def whole_recipe(recipe: Recipe, seed: int) -> Recipe:
    """Return `recipe` with every default; `seed` is the model's, used if the recipe has none."""
    whole = {**DEFAULTS, **recipe}
    return {**whole, "seed": seed if whole["seed"] is None else whole["seed"]}


def resolve_amp(amp: str, device: str) -> str:
    """Resolve `auto` to `bf16` if the device supports it natively, else `off`."""
    if amp != "auto":
        return amp
    if device == "cuda":
        import torch

        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "off"
    try:
        flags = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        flags = set()
    return "bf16" if flags & {"avx512_bf16", "amx_bf16", "bf16"} else "off"
