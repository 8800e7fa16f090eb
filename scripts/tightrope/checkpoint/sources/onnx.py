"""Models that are an ONNX file, with the tokenizer or the image processor beside it."""

from pathlib import Path
from typing import Any

from tightrope.artifacts.provenance import library_versions
from tightrope.checkpoint.checks import check_sha256
from tightrope.checkpoint.source import Source
from tightrope.checkpoint.sources.folder import ENCODERS, copy
from tightrope.errors import ConfigError
from tightrope.inputs.image_settings import FILE as PROCESSOR
from tightrope.inputs.image_settings import load_settings
from tightrope.signature import IMAGE


def local_files(source: Source) -> list[Path]:
    """The file, and the tokenizer or the image processor beside it.

    Raises ConfigError for a missing file, and where a model of images has no image processor, for
    nothing else says how an image becomes its input.
    """
    file = Path(source.place).expanduser()
    if not file.is_file():
        raise ConfigError(f"{source.text}: there is no such file")
    if source.task == IMAGE and not file.with_name(PROCESSOR).is_file():
        raise ConfigError(
            f"{source.text}: there is no {PROCESSOR} beside it; put the image processor of its "
            "checkpoint there, as save_pretrained writes it"
        )
    beside = [file.with_name(name) for name in ENCODERS]
    return [file, *(one for one in beside if one.is_file())]


def libraries(_source: Source) -> dict[str, str | None]:
    """That which reads it."""
    return library_versions("onnx")


def longest_sequence(source: Source) -> None:
    """Not known; raises ConfigError for a missing file."""
    local_files(source)


def fetch(source: Source, folder: Path) -> None:
    """Copy the files into `folder`, the model as model.onnx."""
    from tightrope.onnx.imported import FILE

    copy(local_files(source), folder)
    (folder / Path(source.place).name).rename(folder / FILE)


def check(source: Source, folder: Path) -> dict[str, Any]:
    """What stands in the place of a config.json, after the file was found to be one to be used."""
    from tightrope.onnx.imported import FILE, read_onnx_file

    read_onnx_file(source.text, folder / FILE)
    check_sha256(source.text, folder / FILE, source.sha256)
    if source.task == IMAGE:
        load_settings(folder)
    return {"model_type": "onnx"}
