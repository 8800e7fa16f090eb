"""The checkpoint that a model starts from: fetched or copied, and checked."""

import json
from pathlib import Path
from typing import Any

from tightrope.checkpoint_checks import check_sha256, check_weights, read_config
from tightrope.errors import ConfigError
from tightrope.files import read_bytes, storage_errors, write_bytes
from tightrope.image_settings import FILE as PROCESSOR
from tightrope.image_settings import load_settings
from tightrope.manifest import clear_folder, write_manifest
from tightrope.model_limits import positions
from tightrope.provenance import library_versions
from tightrope.sources.hub import fetch_model, parse_place
from tightrope.sources.package import checkpoint_folder, package_version
from tightrope.sources.scratch import parse_architecture, write_random_model
from tightrope.tasks import IMAGE, TEXT

KINDS = (
    "hub:owner/name@revision",
    "path:folder",
    "package:module/folder",
    "scratch:architecture",
    "onnx:file.onnx",
)
NEEDED = ("config.json", "model.safetensors")
FILES = [
    *NEEDED,
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
]
REMEDY = (
    "to use a local copy instead, give the model checkpoint 'path:FOLDER', "
    "for example with --config 'models={NAME: {checkpoint: \"path:my/folder\"}}'"
)


def prepare_checkpoint(
    manifest: Path | str,
    *,
    source: str,
    expected_sha256: str | None,
    seed: int,
    task: str = TEXT,
) -> None:
    """Put the files of `source` beside `manifest`, check them, and write the manifest last.

    Raises TightropeError where weights are missing, truncated, not in safetensors, or not
    those of `expected_sha256`, and where no model of the task can be made of them. No code of
    the source is run.
    """
    kind, place = parse_source(source)
    folder = clear_folder(manifest)
    revision = None
    if kind == "scratch":
        with storage_errors(folder):
            write_random_model(source, place, folder, seed=seed)
    elif kind == "hub":
        with storage_errors(folder):
            revision = fetch_model(source, place, folder, files=FILES, remedy=REMEDY)
        check_present(source, folder)
    else:
        for file in source_files(source, task=task):
            write_bytes(folder / file.name, read_bytes(file))
    if kind == "onnx":
        rename_onnx(source, place, folder, expected_sha256)
        if task == IMAGE:
            load_settings(folder)
        config: dict[str, Any] = {"model_type": "onnx"}
    else:
        check_weights(source, folder / "model.safetensors", expected_sha256)
        config = read_config(source, folder, task=task)
    write_manifest(
        manifest,
        source=source,
        revision=revision,
        task=task,
        model_type=config["model_type"],
        architecture=next(iter(config.get("architectures") or []), None),
    )


def parse_source(source: str) -> tuple[str, str]:
    """Kind and place of a checkpoint source; raises ConfigError naming the kinds there are."""
    kind, _, place = source.partition(":")
    if kind not in [known.partition(":")[0] for known in KINDS] or not place:
        raise ConfigError(f"{source}: no checkpoint source; there are {', '.join(KINDS)}")
    return kind, place


def source_folder(source: str) -> Path | None:
    """The local folder that `source` names, None for hub and scratch."""
    kind, place = parse_source(source)
    if kind == "package":
        return checkpoint_folder(source, place)
    if kind == "path":
        folder = Path(place).expanduser()
        if not folder.is_dir():
            raise ConfigError(f"{source}: there is no such folder")
        return folder
    return None


def source_files(source: str, *, task: str = TEXT) -> list[Path]:
    """The files of a local source that are copied.

    Of an ONNX file also the tokenizer or the image processor beside it; a model of images needs
    one, for nothing else says how an image becomes its input.
    """
    kind, place = parse_source(source)
    if kind == "onnx":
        file = Path(place).expanduser()
        if not file.is_file():
            raise ConfigError(f"{source}: there is no such file")
        beside = [file.with_name(name) for name in FILES if name not in NEEDED]
        if task == IMAGE and not file.with_name(PROCESSOR).is_file():
            raise ConfigError(
                f"{source}: there is no {PROCESSOR} beside it; put the image processor of its "
                "checkpoint there, as save_pretrained writes it"
            )
        return [file, *(one for one in beside if one.is_file())]
    folder = source_folder(source)
    if folder is None:
        return []
    check_present(source, folder)
    return [folder / name for name in FILES if (folder / name).is_file()]


def check_present(source: str, folder: Path) -> None:
    """Raise ConfigError where config.json or model.safetensors is missing."""
    for name in NEEDED:
        if (folder / name).is_file():
            continue
        if (folder / f"{name}.index.json").is_file():
            raise ConfigError(f"{source}: not yet: weights in several files; save them as {name}")
        pickles = sorted(file.name for file in folder.glob("*.bin"))
        if name == "model.safetensors" and pickles:
            raise ConfigError(
                f"{source}: has {pickles[0]} but no {name}; pickled weights are never read, "
                "save the model again with save_pretrained"
            )
        raise ConfigError(f"{source}: has no {name}; a checkpoint needs {' and '.join(NEEDED)}")


def rename_onnx(source: str, place: str, folder: Path, expected_sha256: str | None) -> None:
    """Call the copied ONNX file model.onnx, after it was found to be one that can be used."""
    from tightrope.onnx_checkpoint import FILE, read_onnx_file

    file = (folder / Path(place).name).rename(folder / FILE)
    read_onnx_file(source, file)
    check_sha256(source, file, expected_sha256)


def local_files(source: str, *, task: str = TEXT) -> list[str]:
    """Files that a path: or onnx: source copies, none for the other kinds; reads no content.

    Raises ConfigError for an unknown kind, a missing folder, file or package.
    """
    kind, place = parse_source(source)
    if kind == "hub":
        parse_place(source, place)
    if kind == "scratch":
        parse_architecture(source, place)
    files = source_files(source, task=task)
    return [str(file) for file in files] if kind in ("path", "onnx") else []


def libraries(source: str) -> dict[str, str | None]:
    """Versions of the libraries and packages that shape the copied or random weights."""
    kind, place = parse_source(source)
    if kind == "package":
        name = place.partition("/")[0]
        return {name: package_version(name)}
    if kind == "onnx":
        return library_versions("onnx")
    return library_versions("torch", "transformers") if kind == "scratch" else {}


def longest_sequence(source: str) -> int | None:
    """Most tokens that a local model takes, by its config.json; None where it is not known."""
    kind, place = parse_source(source)
    if kind == "scratch":
        model_type, sizes = parse_architecture(source, place)
        return positions({**sizes, "model_type": model_type})
    folder = source_folder(source)
    if folder is None:
        source_files(source)
        return None
    check_present(source, folder)
    try:
        return positions(json.loads((folder / "config.json").read_text()))
    except ValueError as error:
        raise ConfigError(f"{source}: config.json is no valid JSON ({error})") from error
