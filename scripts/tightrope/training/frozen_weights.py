"""Frozen weights, selected by module name."""

from collections.abc import Sequence
from typing import Any

from tightrope.errors import TightropeError


def freeze(model: Any, modules: Sequence[str]) -> None:
    """Freeze every weight of the named modules; all other weights are trained.

    Raises TightropeError for a name without weights, or if nothing is left to train.
    """
    names = [name for name, _ in model.named_parameters()]
    for module in modules:
        if not any(belongs(name, module) for name in names):
            available = ", ".join(dict.fromkeys(path for path in map(parent, names) if path))
            raise TightropeError(
                f"train.frozen: {type(model).__name__} has no module {module} with weights; "
                f"name some of {available}, or a module that holds them"
            )
    for name, weight in model.named_parameters():
        weight.requires_grad_(not any(belongs(name, module) for module in modules))
    if not any(weight.requires_grad for weight in model.parameters()):
        raise TightropeError("train.frozen: nothing is left to train; name fewer modules")


def belongs(weight: str, module: str) -> bool:
    """Whether the weight of this dotted name is in the module, at any depth."""
    return weight.startswith(f"{module}.")


def parent(weight: str) -> str:
    """Return the dotted name of the module that holds the weight."""
    return weight.rpartition(".")[0]
