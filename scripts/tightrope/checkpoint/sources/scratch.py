"""Architectures with random weights, for tests and latency only."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import yaml

from tightrope.artifacts.files import storage_errors
from tightrope.artifacts.provenance import library_versions
from tightrope.checkpoint.folder import check_folder, loads_code
from tightrope.checkpoint.source import Source
from tightrope.errors import ConfigError

check = check_folder
# characters of a source: a value that is nested deeply takes minutes to parse
LONGEST = 1000
# of a configuration of transformers
FIELD = re.compile("[a-zA-Z][a-zA-Z0-9_]*")


def local_files(source: Source) -> list[Path]:
    """Return no files; raise ConfigError if the sizes cannot be parsed."""
    parse_architecture(source.text, source.location)
    return []


def libraries(_source: Source) -> dict[str, str | None]:
    """Return versions of the libraries that initialize the weights."""
    return library_versions("torch", "transformers")


def config_json(source: Source) -> dict[str, Any]:
    """Return the part of config.json that the source sets."""
    model_type, sizes = parse_architecture(source.text, source.location)
    return {**sizes, "model_type": model_type}


def parse_architecture(source: str, location: str) -> tuple[str, dict[str, Any]]:
    """Parse `bert?hidden_size=32&num_hidden_layers=2` into model type and config fields."""
    model_type, _, query = location.partition("?")
    if len(location) > LONGEST:
        raise ConfigError(f"{source[:100]}...: longer than {LONGEST} characters; shorten it")
    try:
        fields = parse_qsl(query, strict_parsing=True) if query else []
        sizes = {name: yaml.safe_load(value) for name, value in fields}
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ConfigError(f"{source}: sizes are written like ?hidden_size=32&...") from error
    if wrong := [name for name in sizes if not FIELD.fullmatch(name) or loads_code(name)]:
        raise ConfigError(f"{source}: {wrong[0]} is no size of a model; remove it")
    return model_type, sizes


def fetch(source: Source, folder: Path) -> None:
    """Write config.json and model.safetensors with weights initialized from the seed."""
    import torch
    from transformers import AutoConfig, AutoModel

    model_type, sizes = parse_architecture(source.text, source.location)
    try:
        config = AutoConfig.for_model(model_type)
    except ValueError as error:
        raise ConfigError(
            f"{source.text}: transformers knows no architecture {model_type!r}"
        ) from error
    # a method is no field; to_dict leaves out the names that a model type has for common fields
    known = config.to_dict()
    unknown = [one for one in sizes if one not in known and callable(getattr(config, one, print))]
    if unknown:
        raise ConfigError(f"{source.text}: the config of {model_type} has no {', '.join(unknown)}")
    torch.manual_seed(source.seed)
    try:
        model = AutoModel.from_config(AutoConfig.for_model(model_type, **sizes))
    except Exception as error:  # configs and models raise different errors for bad sizes
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(f"{source.text}: invalid model sizes ({reason})") from error
    with storage_errors(folder):
        model.save_pretrained(folder)
