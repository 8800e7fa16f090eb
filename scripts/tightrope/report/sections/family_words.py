"""What was changed of a model, in words."""

from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any]


def change_words(changes: Record) -> list[str]:
    """Return a phrase per change: `3 layers`, `512 neurons per layer`, `activation relu`."""
    known = {"prune": prune_words, "train": train_words}
    found = []
    for key, value in changes.items():
        found += known[key](value) if key in known else [other_words(key, value)]
    return found


def prune_words(prune: Record) -> list[str]:
    """Return what pruning left."""
    found = []
    for key, value in prune.items():
        match key:
            case "layers":
                whole = isinstance(value, int)
                found.append(f"{value} layers" if whole else f"layers {listed(value)}")
            case "intermediate":
                found.append(f"{value} neurons per layer")
            case _:
                found.append(f"prune {other_words(key, value)}")
    return found


def train_words(recipe: Record) -> list[str]:
    """Return how long a model was trained."""
    epochs = recipe.get("epochs")
    return [f"trained {epochs} {'epoch' if epochs == 1 else 'epochs'}"] if epochs else ["trained"]


def other_words(key: str, value: Any) -> str:
    """Return a change of another kind, its values by name."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{name} {listed(one)}" for name, one in value.items())
        return f"{key}: {inside}"
    return key if value is True else f"{key} {listed(value)}"


def listed(value: Any) -> str:
    """Format a value, several of them with commas."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def parameter_words(count: int | None) -> str | None:
    """Format a number of parameters in millions: `22.7 M`, below a million in full."""
    if count is None:
        return None
    return f"{count / 1e6:.1f} M" if count >= 1e6 else f"{count:,}"
