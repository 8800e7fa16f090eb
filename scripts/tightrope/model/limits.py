"""What a model's config.json says of the inputs that it takes."""

from typing import Any

# Model types whose first positions are reserved: padding and what comes before it.
OFFSETS = ("roberta", "camembert", "mpnet", "data2vec-text")


def positions(config: dict[str, Any]) -> int | None:
    """Tokens that a model with this config.json takes, None where it sets no limit."""
    found = config.get("max_position_embeddings") or config.get("n_positions")
    if not isinstance(found, int) or found < 1:
        return None
    reserved = config.get("model_type", "").removeprefix("xlm-") in OFFSETS
    return found - (config.get("pad_token_id") or 0) - 1 if reserved else found
