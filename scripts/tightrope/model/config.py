"""Activation and token limit in the config.json of a checkpoint."""

from pathlib import Path
from typing import Any

from tightrope.artifacts.files import read_json

# Model types that reserve the positions up to and including the padding id.
OFFSETS = ("roberta", "camembert", "mpnet", "data2vec-text")

# Tightrope's own field: transformers' hidden_act does not accept all of our activations
FIELD = "tightrope_activation"
FIELDS = (FIELD, "hidden_act", "activation", "activation_function")


def activation_of(config: Path | str) -> str | None:
    """Return the activation in config.json; None if the file is missing or names none."""
    if not Path(config).is_file():
        return None
    document = read_json(config)
    names = (document.get(field) for field in FIELDS)
    return next((name for name in names if isinstance(name, str)), None)


def positions(config: dict[str, Any]) -> int | None:
    """Return the maximum number of tokens in this config.json; None if it sets no limit."""
    limit = config.get("max_position_embeddings") or config.get("n_positions")
    if not isinstance(limit, int) or limit < 1:
        return None
    reserved = config.get("model_type", "").removeprefix("xlm-") in OFFSETS
    return limit - (config.get("pad_token_id") or 0) - 1 if reserved else limit
