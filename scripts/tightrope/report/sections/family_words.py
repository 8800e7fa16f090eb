"""What was changed of a model, in words."""

from collections.abc import Mapping
from typing import Any

from tightrope.report.style.numbers import TIMES

Record = Mapping[str, Any]


def change_words(changes: Record) -> list[str]:
    """Return a phrase per change: `3 layers`, `512 neurons per layer`, `activation relu`."""
    known = {
        "prune": prune_words,
        "distill": distill_words,
        "qat": qat_words,
        "train": train_words,
    }
    found = []
    for key, value in changes.items():
        found += known[key](value) if key in known else [other_words(key, value)]
    return found


def prune_words(prune: Record) -> list[str]:
    """Return what pruning left."""
    found = []
    for key, value in prune.items():
        match key:
            case "blocks":
                found.append(f"{' + '.join(str(len(stage)) for stage in value)} blocks")
            case "intermediate" if "blocks" in prune:
                found.append(f"{value} neurons per block of the first stage")
            case "layers":
                whole = isinstance(value, int)
                found.append(f"{value} layers" if whole else f"layers {listed(value)}")
            case "intermediate":
                found.append(f"{value} neurons per layer")
            case "heads":
                found.append(f"{value} attention heads per layer")
            case "target":
                found.append(target_words(value.get("asked") or {}))
            case _:
                found.append(f"prune {other_words(key, value)}")
    return found


def target_words(asked: Record) -> str:
    """Return what the sizes were chosen for: a speed-up or a number of parameters."""
    if "parameters" in asked:
        return f"chosen for at most {parameter_words(asked['parameters'])} parameters"
    return f"chosen for a speed-up of {asked.get('speedup')}{TIMES}"


def distill_words(distill: Record) -> list[str]:
    """Return the teacher of a model."""
    return [f"distilled from {distill.get('from')}"]


def qat_words(qat: Record) -> list[str]:
    """Return the scheme whose values a model was trained with, and whether with outputs too."""
    return [f"trained for {qat.get('scheme')}" + (", outputs too" if qat.get("outputs") else "")]


def train_words(recipe: Record) -> list[str]:
    """Return how long a model was trained, and the share of its weights that this made zero."""
    epochs, share = recipe.get("epochs"), recipe.get("sparsity")
    long = f"trained {epochs} {'epoch' if epochs == 1 else 'epochs'}" if epochs else "trained"
    return [long, f"{100 * share:.0f} % of the weights zero"] if share else [long]


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
