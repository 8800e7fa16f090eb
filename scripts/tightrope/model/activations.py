"""Activation functions by name, and their replacement in transformers models."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tightrope.errors import TightropeError
from tightrope.model.config import FIELD
from tightrope.model.fast_swish import FastSwish

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
    "hardswish": nn.Hardswish,
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "fast_swish": FastSwish,
}
# transformers' names of activations that bound a gate or a pooled vector, and of the identity
KEPT = ("linear", "sigmoid", "tanh")
FUNCTIONS = ("gelu", "hardswish", "leaky_relu", "mish", "relu", "relu6", "silu")


def make_activation(name: str) -> nn.Module:
    """Return a new activation module; raise TightropeError for an unknown name."""
    if name not in ACTIVATIONS:
        raise TightropeError(f"activation {name}: unknown; there are {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]()


def replace_activations(module: nn.Module, name: str) -> int:
    """Replace every activation of `module` by activation `name`; return the number replaced.

    Replaces submodules, and plain functions that a module holds as attributes. Tanh and sigmoid
    stay, because poolers and gates use them; so do functions that a forward calls directly. Raises
    TightropeError naming the model class if it has no activation to replace.
    """
    make_activation(name)
    from transformers.activations import ACT2CLS

    # some have arguments beside their class
    classes = {
        key: entry[0] if isinstance(entry, tuple) else entry for key, entry in ACT2CLS.items()
    }
    known = {kind for key, kind in classes.items() if key not in KEPT}
    kinds = (*known, nn.GELU, FastSwish)
    named = (vars(nn.functional), vars(torch))
    functions = [names[one] for names in named for one in FUNCTIONS if one in names]
    count = 0
    for owner in list(module.modules()):
        if isinstance(owner, kinds):
            continue
        for attribute, value in [*owner._modules.items(), *vars(owner).items()]:
            if isinstance(value, kinds) or any(value is one for one in functions):
                setattr(owner, attribute, make_activation(name))
                count += 1
    if not count:
        raise TightropeError(
            f"{type(module).__name__}: has no activation that can be replaced; remove activation"
        )
    return count


def swap_activation(model: Any, name: str) -> None:
    """Replace the activations of a transformers model and record `name` in its config."""
    count = replace_activations(model, name)
    setattr(model.config, FIELD, name)
    print(f"{type(model).__name__}: {count} activations are now {name}")


def restore_activation(model: Any) -> None:
    """Replace the activations of a newly loaded model if its config.json names a replacement."""
    name = getattr(model.config, FIELD, None)
    if name is not None:
        replace_activations(model, name)
