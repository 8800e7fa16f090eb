"""Activation and token limit in the config.json of a checkpoint."""

from pathlib import Path
from typing import Annotated, Any, TypedDict

from msgspec import Meta

from tightrope.artifacts.files import read_json

# Model types that reserve the positions up to and including the padding id.
OFFSETS = ("roberta", "camembert", "mpnet", "data2vec-text")

# Tightrope's own field: transformers' hidden_act does not accept all of our activations
FIELD = "tightrope_activation"
# -1 stands for none; no model has more tokens or outputs
Number = Annotated[int, Meta(ge=-1, le=2**31)]
FIELDS = (FIELD, "hidden_act", "activation", "activation_function")


class ConfigJson(TypedDict, total=False):
    """The fields of a checkpoint's config.json that this project reads itself."""

    model_type: str | None
    architectures: list[str] | None
    auto_map: dict[str, Any] | None
    id2label: dict[str, str | int] | None
    num_labels: Number | None
    num_channels: Number | None
    problem_type: str | None
    max_position_embeddings: Number | None
    n_positions: Number | None
    pad_token_id: Number | None
    quantization_config: dict[str, Any] | None
    compression_config: dict[str, Any] | None


def activation_of(config: Path | str) -> str | None:
    """Return the activation in config.json; None if the file is missing or names none."""
    if not Path(config).is_file():
        return None
    document = read_json(config, dict[str, Any])
    names = (document.get(field) for field in FIELDS)
    return next((name for name in names if isinstance(name, str)), None)


def positions(config: dict[str, Any]) -> int | None:
    """Return the maximum number of tokens in this config.json; None if it sets no limit."""
    limit = config.get("max_position_embeddings") or config.get("n_positions")
    if not isinstance(limit, int) or limit < 1:
        return None
    reserved = (config.get("model_type") or "").removeprefix("xlm-") in OFFSETS
    return limit - (config.get("pad_token_id") or 0) - 1 if reserved else limit
