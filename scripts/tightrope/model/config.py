"""What the config.json of a checkpoint says: its activation, and how many tokens it takes."""

from pathlib import Path
from typing import Any

from tightrope.artifacts.files import read_json

# Model types whose first positions are reserved: padding and what comes before it.
OFFSETS = ("roberta", "camembert", "mpnet", "data2vec-text")

# what Tightrope writes: hidden_act is of transformers, which does not know all of them
FIELD = "tightrope_activation"
FIELDS = (FIELD, "hidden_act", "activation", "activation_function")


def activation_of(config: Path | str) -> str | None:
    """The activation that the config.json names; None where it names none, or there is no such."""
    if not Path(config).is_file():
        return None
    document = read_json(config)
    named = (document.get(field) for field in FIELDS)
    return next((name for name in named if isinstance(name, str)), None)


def positions(config: dict[str, Any]) -> int | None:
    """Tokens that a model with this config.json takes, None where it sets no limit."""
    found = config.get("max_position_embeddings") or config.get("n_positions")
    if not isinstance(found, int) or found < 1:
        return None
    reserved = config.get("model_type", "").removeprefix("xlm-") in OFFSETS
    return found - (config.get("pad_token_id") or 0) - 1 if reserved else found
