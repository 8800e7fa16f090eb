"""The recipe of a training: its defaults, what cannot be, and what `auto` means on this machine."""

from pathlib import Path
from typing import Any

from tightrope.errors import TightropeError

Recipe = dict[str, Any]
DEFAULTS: Recipe = {
    "epochs": 1,
    "batch": 32,
    "learning_rate": 2e-4,
    "weight_decay": 0.01,
    "warmup": 0.1,
    "sequence": 64,
    "frozen": [],
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
    """`recipe` with every default; the seed is the model's where it has none of its own."""
    whole = {**DEFAULTS, **recipe}
    return {**whole, "seed": seed if whole["seed"] is None else whole["seed"]}


def check_recipe(recipe: Recipe, *, images: bool) -> None:
    """Raise TightropeError where a whole recipe asks for what texts do not have."""
    wrong = [
        name for name in ("channels_last", "augmentation") if recipe[name] not in (False, "off")
    ]
    if wrong and not images:
        raise TightropeError(
            f"train.{wrong[0]}: texts have no such thing; it is for images, remove it"
        )


def chosen_amp(asked: str, device: str) -> str:
    """`bf16` for auto where the device multiplies in it, else `off`; or what was asked for."""
    if asked != "auto":
        return asked
    if device == "cuda":
        import torch

        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "off"
    try:
        words = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        words = set()
    return "bf16" if words & {"avx512_bf16", "amx_bf16", "bf16"} else "off"
