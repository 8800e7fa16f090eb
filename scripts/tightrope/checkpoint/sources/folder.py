"""Checkpoint files in a folder, shared by several kinds of source."""

import json
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import read_bytes, write_bytes
from tightrope.checkpoint.checks import check_weights, read_config
from tightrope.checkpoint.source import Source
from tightrope.errors import ConfigError
from tightrope.inputs.image_settings import FILE as PROCESSOR
from tightrope.model.config import positions

NEEDED = ("config.json", "model.safetensors")
# files of the tokenizer or the image processor
ENCODERS = (
    PROCESSOR,
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
)
FILES = (*NEEDED, *ENCODERS)


def files_in(text: str, folder: Path) -> list[Path]:
    """Return the used files in `folder`; raise ConfigError if a required file is missing."""
    check_present(text, folder)
    return [folder / name for name in FILES if (folder / name).is_file()]


def copy(files: list[Path], folder: Path) -> None:
    """Copy the files into `folder`."""
    for file in files:
        write_bytes(folder / file.name, read_bytes(file))


def check_present(text: str, folder: Path) -> None:
    """Raise ConfigError if config.json or model.safetensors is missing."""
    for name in NEEDED:
        if (folder / name).is_file():
            continue
        if (folder / f"{name}.index.json").is_file():
            raise ConfigError(
                f"{text}: not supported yet: weights in several files; save them as {name}"
            )
        pickles = sorted(file.name for file in folder.glob("*.bin"))
        if name == "model.safetensors" and pickles:
            raise ConfigError(
                f"{text}: has {pickles[0]} but no {name}; pickled weights are never read, "
                "save the model again with save_pretrained"
            )
        raise ConfigError(f"{text}: has no {name}; a checkpoint needs {' and '.join(NEEDED)}")


def check_folder(source: Source, folder: Path) -> dict[str, Any]:
    """Check the weights of a fetched checkpoint and return its checked config.json."""
    check_weights(source.text, folder / "model.safetensors", source.sha256)
    return read_config(source.text, folder, task=source.task)


def positions_in(text: str, folder: Path) -> int | None:
    """Return the token limit of the model in `folder`; raise ConfigError for a bad config.json."""
    check_present(text, folder)
    try:
        return positions(json.loads((folder / "config.json").read_text()))
    except ValueError as error:
        raise ConfigError(f"{text}: config.json is invalid JSON ({error})") from error
