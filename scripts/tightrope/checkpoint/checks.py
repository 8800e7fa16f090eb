"""Checks of checkpoint files before they are used."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tightrope.artifacts.files import read_bytes, sha256
from tightrope.checkpoint.settings import settings_in
from tightrope.errors import ArtifactError, ConfigError, TightropeError, in_foreign_files
from tightrope.inputs.image_settings import load_settings
from tightrope.model.config import ConfigJson
from tightrope.signature import IMAGE, TEXT

# a config.json with the names of 20,000 classes has a few MB
LARGEST_SETTINGS = 2**26


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


def check_encoder(source: str, folder: Path) -> None:
    """Raise TightropeError if the tokenizer.json in `folder`, if any, cannot be read."""
    file = folder / "tokenizer.json"
    if not file.is_file():
        return
    from tokenizers import Tokenizer

    with in_foreign_files(f"{source}: {file.name} cannot be read", "save the tokenizer again"):
        Tokenizer.from_file(str(file))


def config_of(source: str, folder: Path) -> dict[str, Any]:
    """Return the config.json in `folder`.

    Raises ConfigError if it is no JSON object, if a field that is read here is of another type, and
    if the weights are quantized in a way of their own.
    """
    file = folder / "config.json"
    config = settings_in(source, file.name, read_bytes(file, LARGEST_SETTINGS))
    try:
        msgspec.convert(config, ConfigJson)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: config.json: {error}; save the model again") from error
    for name in ("quantization_config", "compression_config"):
        if config.get(name):
            raise ConfigError(
                f"{source}: config.json has {name}: its weights are quantized already, in a form "
                "that takes other libraries; give it in float, or as an ONNX file with Q/DQ"
            )
    return config


def read_config(source: str, folder: Path, *, task: str) -> dict[str, Any]:
    """Read config.json; raise TightropeError if transformers has no classifier of the task for it.

    For images also if `load_settings` does not support preprocessor_config.json.
    """
    from transformers import AutoConfig
    from transformers.models.auto import modeling_auto

    by_task: dict[str, Mapping[str, Any]] = {
        TEXT: modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
        IMAGE: modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES,
    }
    classifiers = by_task[task]
    config = config_of(source, folder)
    model_type = config.get("model_type")
    if model_type not in classifiers:
        raise TightropeError(
            f"{source}: model_type {model_type!r} cannot be used: transformers has no model for "
            f"{task} of that kind, and code that comes with a checkpoint is never run"
        )
    with in_foreign_files(f"{source}: config.json cannot be used", "save the model again"):
        AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    if task == IMAGE:
        load_settings(folder)
    return config
