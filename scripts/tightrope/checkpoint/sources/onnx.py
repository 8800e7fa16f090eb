"""ONNX models, with the tokenizer or image processor in the same folder."""

from pathlib import Path
from typing import Any

from tightrope.artifacts.provenance import library_versions
from tightrope.checkpoint.folder import ENCODERS, check_encoder, check_sha256, copy
from tightrope.checkpoint.source import Source
from tightrope.errors import ConfigError
from tightrope.inputs.image_settings import FILE as PROCESSOR
from tightrope.inputs.image_settings import load_settings
from tightrope.signature import IMAGE
from tightrope.sources.local import home_expanded

# how archives and pickles begin, in which PyTorch saves
PYTORCH = (b"PK", b"\x80\x02")


def local_files(source: Source) -> list[Path]:
    """Return the ONNX file and its encoder's files; raise ConfigError where one is missing."""
    file = home_expanded(source.text, source.location)
    if not file.is_file():
        raise ConfigError(f"{source.text}: there is no such file")
    with file.open("rb") as stream:
        if stream.read(2) in PYTORCH:
            raise ConfigError(f"{source.text}: is a file of PyTorch; export it as an ONNX file")
    if source.task == IMAGE and not file.with_name(PROCESSOR).is_file():
        raise ConfigError(
            f"{source.text}: there is no {PROCESSOR} beside it; put the image processor of its "
            "checkpoint there, as save_pretrained writes it"
        )
    encoders = [file.with_name(name) for name in ENCODERS]
    return [file, *(encoder for encoder in encoders if encoder.is_file())]


def libraries(_source: Source) -> dict[str, str | None]:
    """Return the version of onnx, which reads the file."""
    return library_versions("onnx")


def config_json(source: Source) -> None:
    """Return None: an ONNX file has none; raise ConfigError for a missing file."""
    local_files(source)


def fetch(source: Source, folder: Path) -> None:
    """Copy the files into `folder`, the model as model.onnx."""
    from tightrope.onnx.imported import FILE

    copy(source.text, local_files(source), folder)
    (folder / Path(source.location).name).rename(folder / FILE)


def check(source: Source, folder: Path) -> dict[str, Any]:
    """Check the ONNX file; return a substitute for config.json."""
    from tightrope.onnx.float_model import require_as_said
    from tightrope.onnx.imported import FILE, read_onnx_file

    model = read_onnx_file(source.text, folder / FILE)
    require_as_said(model, source.text, quantized=source.quantized)
    check_sha256(source.text, folder / FILE, source.sha256)
    if source.task == IMAGE:
        load_settings(folder)
    check_encoder(source.text, folder)
    return {"model_type": "onnx"}
