"""Checkpoint files in a folder: which are used, how they are copied and checked."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tightrope.artifacts.files import copy_file, read_bytes, sha256, strict_json, write_bytes
from tightrope.errors import ArtifactError, ConfigError, TightropeError, in_foreign_files
from tightrope.inputs.image_settings import FILE as PROCESSOR
from tightrope.inputs.image_settings import load_settings
from tightrope.model.config import ConfigJson
from tightrope.signature import IMAGE, TEXT

WEIGHTS = "model.safetensors"
NARROW = {"I8", "U8", "F8_E4M3", "F8_E5M2"}
NEEDED = ("config.json", WEIGHTS)
# suffixes of files that PyTorch and others pickle
PICKLES = {".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth", ".th"}
# tokenizers that take the library sentencepiece to be read
SENTENCEPIECE = ("spm.model", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model")
# files of the tokenizer or the image processor
ENCODERS = (
    *(PROCESSOR, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "vocab.txt", "vocab.json", "merges.txt"),
    *SENTENCEPIECE,
)
FILES = (*NEEDED, *ENCODERS)
# files of settings
SETTINGS = ("config.json", "tokenizer_config.json", PROCESSOR)
# a config.json with the names of 20,000 classes has a few MB
LARGEST_SETTINGS = 2**26
# Code of the checkpoint, and kernels that transformers would fetch from the Hub: engines choose the
# implementation of attention themselves.
CODE = ("auto_map", "custom_pipelines", "trust_remote_code", "use_kernels", "kernel_config")
FORM = ("return_dict", "torchscript", "output_attentions", "output_hidden_states")
IMPLEMENTATIONS = ("attn_implementation", "experts_implementation")
# the author's own paths
PATHS = ("name_or_path", "_name_or_path")


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


def check_weights(source: str, file: Path, expected_sha256: str | None) -> None:
    """Raise ArtifactError for truncated or empty weights, or for an unexpected sha256."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy") as weights:
            empty = not list(weights.keys())
            kinds = {weights.get_slice(name).get_dtype() for name in weights.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ArtifactError(
            f"{source}: {file.name} is truncated or no safetensors file ({error}); fetch it again"
        ) from error
    if empty:
        raise ArtifactError(f"{source}: {file.name} holds no weights; fetch it again")
    if kinds & NARROW:
        raise ArtifactError(f"{source}: {file.name} has quantized weights; give it in float")
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
    """Raise TightropeError if the tokenizer.json in `folder` cannot be read, or has to be made."""
    file = folder / "tokenizer.json"
    if not file.is_file():
        for name in SENTENCEPIECE:
            if (folder / name).is_file():
                raise TightropeError(
                    f"{source}: has {name} but no tokenizer.json; where sentencepiece is installed "
                    "save_pretrained of transformers' AutoTokenizer makes it"
                )
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


def without_code(source: str, name: str, content: bytes) -> bytes:
    """Return the settings file `name` without the fields that load code; else the same bytes.

    Raises ConfigError naming `source` where it holds no JSON object.
    """
    document = settings_in(source, name, content)
    kept = stripped(document)
    if kept == document:
        return content
    return json.dumps(kept, indent=2, sort_keys=True).encode() + b"\n"


def settings_in(source: str, name: str, content: bytes) -> dict[str, Any]:
    """Return the JSON object in a settings file; raise ConfigError naming `source` without one."""
    try:
        document = strict_json(content)
    except ValueError as error:
        raise ConfigError(f"{source}: {name} is invalid JSON ({error})") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{source}: {name} holds no JSON object; save the model again")
    return document


def stripped(value: Any) -> Any:
    """Return a copy of a JSON value without the fields that load code, at any depth."""
    if isinstance(value, list):
        return [stripped(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: stripped(one) for name, one in value.items() if not loads_code(name)}


def loads_code(name: str) -> bool:
    """Return whether a field of settings loads code, names a file, or gives outputs a form."""
    implementation = name.removeprefix("_").startswith(IMPLEMENTATIONS)
    return implementation or name in (*CODE, *FORM) or name in PATHS or name.endswith("_file")
