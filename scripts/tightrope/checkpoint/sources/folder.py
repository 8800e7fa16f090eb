"""Checkpoint files in a folder, shared by several kinds of source."""

from pathlib import Path
from typing import Any

from tightrope.artifacts.files import copy_file, read_bytes, write_bytes
from tightrope.checkpoint.checks import (
    LARGEST_SETTINGS,
    check_encoder,
    check_weights,
    config_of,
    read_config,
)
from tightrope.checkpoint.settings import FILES as SETTINGS
from tightrope.checkpoint.settings import without_code
from tightrope.checkpoint.source import Source
from tightrope.errors import ConfigError
from tightrope.inputs.image_settings import FILE as PROCESSOR

WEIGHTS = "model.safetensors"
NEEDED = ("config.json", WEIGHTS)
# suffixes of files that PyTorch and others pickle
PICKLES = {".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth", ".th"}
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


def copy(text: str, files: list[Path], folder: Path) -> None:
    """Copy the files of source `text` into `folder`, without fields that load code.

    Raises ConfigError for a settings file that holds no JSON object.
    """
    for file in files:
        if file.name in SETTINGS:
            settings = read_bytes(file, LARGEST_SETTINGS)
            write_bytes(folder / file.name, without_code(text, file.name, settings))
        else:
            copy_file(file, folder / file.name)


def check_present(text: str, folder: Path) -> None:
    """Raise ConfigError if config.json or the weights are missing, or the weights are pickled."""
    weights = folder / WEIGHTS
    if weights.with_name(f"{WEIGHTS}.index.json").is_file() and not weights.is_file():
        raise ConfigError(
            f"{text}: not supported yet: weights in several files; save them as {WEIGHTS}"
        )
    pickles = sorted(file.name for file in folder.iterdir() if file.suffix in PICKLES)
    if pickles and not weights.is_file():
        raise pickled(f"{text}: has {pickles[0]} but no {WEIGHTS}")
    for name in NEEDED:
        if not (folder / name).is_file():
            raise ConfigError(f"{text}: has no {name}; a checkpoint needs {' and '.join(NEEDED)}")


def pickled(words: str) -> ConfigError:
    """Return the error for pickled weights, with what to do about them."""
    return ConfigError(
        f"{words}; pickled weights are never read, because loading them can run code: save the "
        "model again with save_pretrained, which writes safetensors, or export it to ONNX and "
        "give checkpoint: onnx:FILE"
    )


def check_folder(source: Source, folder: Path) -> dict[str, Any]:
    """Check the weights of a fetched checkpoint and return its checked config.json."""
    check_weights(source.text, folder / WEIGHTS, source.sha256)
    check_encoder(source.text, folder)
    return read_config(source.text, folder, task=source.task)


def config_in(text: str, folder: Path) -> dict[str, Any]:
    """Return the config.json in `folder`; raise ConfigError if it cannot be used."""
    check_present(text, folder)
    return config_of(text, folder)
