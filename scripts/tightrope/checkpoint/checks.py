"""Checks of checkpoint files before they are used."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import read_json, sha256
from tightrope.errors import ArtifactError, TightropeError
from tightrope.inputs.image_settings import load_settings
from tightrope.signature import IMAGE, TEXT


def check_weights(source: str, file: Path, expected_sha256: str | None) -> None:
    """Raise ArtifactError for truncated or empty weights, or for an unexpected sha256."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy") as weights:
            empty = not list(weights.keys())
    except (SafetensorError, OSError) as error:
        raise ArtifactError(
            f"{source}: {file.name} is truncated or no safetensors file ({error}); fetch it again"
        ) from error
    if empty:
        raise ArtifactError(f"{source}: {file.name} holds no weights; fetch it again")
    check_sha256(source, file, expected_sha256)


def check_sha256(source: str, file: Path, expected_sha256: str | None) -> None:
    """Raise ArtifactError if the file does not have the expected sha256."""
    actual = sha256(file)
    if expected_sha256 and actual != expected_sha256:
        raise ArtifactError(
            f"{source}: sha256 of {file.name} is {actual}, checkpoint_sha256 says "
            f"{expected_sha256}; the file was changed, or the key belongs to another one"
        )


def read_config(source: str, folder: Path, *, task: str) -> dict[str, Any]:
    """Read config.json; raise TightropeError if transformers has no classifier of the task for it.

    For images also if `load_settings` does not support preprocessor_config.json.
    """
    from transformers.models.auto import modeling_auto

    by_task: dict[str, Mapping[str, Any]] = {
        TEXT: modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
        IMAGE: modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES,
    }
    classifiers = by_task[task]
    config = read_json(folder / "config.json")
    model_type = config.get("model_type") if isinstance(config, dict) else None
    if model_type not in classifiers:
        reason = (
            "it needs code of its own, which is never run"
            if "auto_map" in (config or ())
            else f"transformers has no model for {task} of that kind"
        )
        raise TightropeError(f"{source}: model_type {model_type!r} cannot be used: {reason}")
    if task == IMAGE:
        load_settings(folder)
    return config
