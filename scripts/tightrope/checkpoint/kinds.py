"""The kinds of checkpoint sources: where the files of each are, and how they are fetched."""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import yaml

from tightrope.artifacts.files import storage_errors
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.artifacts.provenance import library_versions
from tightrope.checkpoint.folder import (
    ENCODERS,
    FILES,
    PICKLES,
    WEIGHTS,
    check_encoder,
    check_present,
    check_sha256,
    check_weights,
    config_of,
    copy,
    files_in,
    loads_code,
    pickled,
    read_config,
)
from tightrope.errors import ConfigError
from tightrope.inputs.image_settings import FILE as PROCESSOR
from tightrope.inputs.image_settings import load_settings
from tightrope.signature import IMAGE, TEXT
from tightrope.sources.hub import fetching, parse_repository
from tightrope.sources.local import home_expanded, package_folder, package_version

REMEDY = (
    "to use a local copy instead, give the model checkpoint 'path:FOLDER', "
    "for example with --config 'models={NAME: {checkpoint: \"path:my/folder\"}}'"
)
# how archives and pickles begin, in which PyTorch saves
PYTORCH = (b"PK", b"\x80\x02")
# characters of an architecture: a value that is nested deeply takes minutes to parse
LONGEST = 1000
# of a configuration of transformers
FIELD = re.compile("[a-zA-Z][a-zA-Z0-9_]*")
# below the folder of a model
CHECKPOINT = Path("checkpoint/checkpoint.json")


@dataclass(frozen=True)
class Source(ABC):
    """A checkpoint source: its configuration string, the part after its kind, settings of the job.

    Each kind is a class, which a job loads by its name, so that it does not depend on the others.
    """

    text: str
    location: str
    task: str = TEXT
    seed: int = 0
    sha256: str | None = None
    quantized: bool = False

    def local_files(self) -> list[Path]:
        """Return the files that are copied; raise ConfigError where something is missing."""
        return []

    def libraries(self) -> dict[str, str | None]:
        """Return versions that determine the files, none where themselves or a revision do."""
        return {}

    def config_json(self) -> dict[str, Any] | None:
        """Return the config.json, None where there is none before the files are fetched."""
        return None

    @abstractmethod
    def fetch(self, folder: Path) -> str | None:
        """Put the files into `folder`; return the revision if there is one."""

    def check(self, folder: Path) -> dict[str, Any]:
        """Check the fetched files; return their config.json or raise TightropeError."""
        check_weights(self.text, folder / WEIGHTS, self.sha256)
        check_encoder(self.text, folder)
        return read_config(self.text, folder, task=self.task)


class HubSource(Source):
    """A checkpoint of the Hugging Face Hub."""

    def local_files(self) -> list[Path]:
        """Return no files; raise ConfigError for an invalid Hub source."""
        parse_repository(self.text, self.location)
        return []

    def fetch(self, folder: Path) -> str:
        """Download the model files into `folder`; return the fetched commit."""
        from huggingface_hub import HfApi, snapshot_download

        repository = parse_repository(self.text, self.location)
        name, revision = repository.name, repository.revision
        with storage_errors(folder):
            with fetching(self.text, REMEDY):
                info = HfApi().model_info(name, revision=revision, timeout=30)
                snapshot = snapshot_download(name, revision=info.sha, allow_patterns=list(FILES))
            files = [file for file in sorted(Path(snapshot).iterdir()) if file.name in FILES]
            copy(self.text, files, folder)
        check_present(self.text, folder)
        return str(info.sha)


class FolderSource(Source):
    """A checkpoint in a folder of this machine."""

    @abstractmethod
    def folder(self) -> Path:
        """Return that folder; raise ConfigError where there is none."""

    def config_json(self) -> dict[str, Any]:
        """Return the config.json; raise ConfigError where it or the weights cannot be used."""
        check_present(self.text, self.folder())
        return config_of(self.text, self.folder())

    def fetch(self, folder: Path) -> None:
        """Copy the checkpoint into `folder`."""
        copy(self.text, files_in(self.text, self.folder()), folder)


class PathSource(FolderSource):
    """A checkpoint in a folder that the configuration names."""

    def local_files(self) -> list[Path]:
        """Return the files that are copied from the folder."""
        return files_in(self.text, self.folder())

    def folder(self) -> Path:
        """Return the configured folder; raise ConfigError if it does not exist."""
        folder = home_expanded(self.text, self.location)
        if folder.is_file() and folder.suffix in PICKLES:
            raise pickled(f"{self.text}: is a file of pickled weights")
        if folder.is_file():
            raise ConfigError(f"{self.text}: is a file; name the folder of the checkpoint")
        if not folder.is_dir():
            raise ConfigError(f"{self.text}: there is no such folder")
        return folder


class PackageSource(FolderSource):
    """A checkpoint in an installed package, which is not imported."""

    def local_files(self) -> list[Path]:
        """Return no files, the version identifies them; raise ConfigError if one is missing."""
        files_in(self.text, self.folder())
        return []

    def libraries(self) -> dict[str, str | None]:
        """Return the version of the package."""
        name = self.location.partition("/")[0]
        return {name: package_version(name)}

    def folder(self) -> Path:
        """Return the folder in the package; raise ConfigError if package or folder is missing."""
        name, _, inner = self.location.partition("/")
        folder = package_folder(self.text, name) / inner
        if not folder.is_dir():
            raise ConfigError(f"{self.text}: package {name} has no folder {inner!r}")
        return folder


class ModelSource(Source):
    """Another model of the configuration, as it was trained."""

    def local_files(self) -> list[Path]:
        """Return the manifest of the other model's checkpoint, which its training writes last."""
        return [Path("artifacts", self.location, CHECKPOINT)]

    def fetch(self, folder: Path) -> None:
        """Copy the checkpoint into `folder`; raise ArtifactError where a file has changed."""
        # beside the folder of this model, which may be below the prefix of a module
        manifest = folder.parents[1] / self.location / CHECKPOINT
        read_manifest(manifest, CheckpointManifest)
        copy(self.text, files_in(self.text, manifest.parent), folder)


class OnnxSource(Source):
    """An ONNX file, with the tokenizer or image processor in the same folder."""

    def local_files(self) -> list[Path]:
        """Return the ONNX file and its encoder's files; raise ConfigError where one is missing."""
        file = home_expanded(self.text, self.location)
        if not file.is_file():
            raise ConfigError(f"{self.text}: there is no such file")
        with file.open("rb") as stream:
            if stream.read(2) in PYTORCH:
                raise ConfigError(f"{self.text}: is a file of PyTorch; export it as an ONNX file")
        if self.task == IMAGE and not file.with_name(PROCESSOR).is_file():
            raise ConfigError(
                f"{self.text}: there is no {PROCESSOR} beside it; put the image processor of its "
                "checkpoint there, as save_pretrained writes it"
            )
        encoders = [file.with_name(name) for name in ENCODERS]
        return [file, *(encoder for encoder in encoders if encoder.is_file())]

    def libraries(self) -> dict[str, str | None]:
        """Return the version of onnx, which reads the file."""
        return library_versions("onnx")

    def config_json(self) -> None:
        """Return None: an ONNX file has none; raise ConfigError for a missing file."""
        self.local_files()

    def fetch(self, folder: Path) -> None:
        """Copy the files into `folder`, the model as model.onnx."""
        from tightrope.onnx.imported import FILE

        copy(self.text, self.local_files(), folder)
        (folder / Path(self.location).name).rename(folder / FILE)

    def check(self, folder: Path) -> dict[str, Any]:
        """Check the ONNX file; return a substitute for config.json."""
        from tightrope.onnx.file import read_onnx_file
        from tightrope.onnx.float_model import require_as_said
        from tightrope.onnx.imported import FILE

        model = read_onnx_file(self.text, folder / FILE)
        require_as_said(model, self.text, quantized=self.quantized)
        check_sha256(self.text, folder / FILE, self.sha256)
        if self.task == IMAGE:
            load_settings(folder)
        check_encoder(self.text, folder)
        return {"model_type": "onnx"}


class ScratchSource(Source):
    """An architecture with random weights, for tests and latency only."""

    def local_files(self) -> list[Path]:
        """Return no files; raise ConfigError if the sizes cannot be parsed."""
        self.architecture()
        return []

    def libraries(self) -> dict[str, str | None]:
        """Return versions of the libraries that initialize the weights."""
        return library_versions("torch", "transformers")

    def config_json(self) -> dict[str, Any]:
        """Return the part of config.json that the source sets."""
        model_type, sizes = self.architecture()
        return {**sizes, "model_type": model_type}

    def architecture(self) -> tuple[str, dict[str, Any]]:
        """Parse `bert?hidden_size=32&num_hidden_layers=2` into model type and config fields."""
        model_type, _, query = self.location.partition("?")
        if len(self.location) > LONGEST:
            raise ConfigError(f"{self.text[:100]}...: longer than {LONGEST} characters; shorten it")
        try:
            fields = parse_qsl(query, strict_parsing=True) if query else []
            sizes = {name: yaml.safe_load(value) for name, value in fields}
        except (ValueError, RecursionError, yaml.YAMLError) as error:
            raise ConfigError(f"{self.text}: sizes are written like ?hidden_size=32&...") from error
        if wrong := [name for name in sizes if not FIELD.fullmatch(name) or loads_code(name)]:
            raise ConfigError(f"{self.text}: {wrong[0]} is no size of a model; remove it")
        return model_type, sizes

    def fetch(self, folder: Path) -> None:
        """Write config.json and model.safetensors with weights initialized from the seed."""
        import torch
        from transformers import AutoConfig, AutoModel

        model_type, sizes = self.architecture()
        try:
            config = AutoConfig.for_model(model_type)
        except ValueError as error:
            raise ConfigError(
                f"{self.text}: transformers knows no architecture {model_type!r}"
            ) from error
        # a method is no field; to_dict leaves out the names that a model type has for common fields
        known = config.to_dict()
        unknown = [one for one in sizes if one not in known and callable(getattr(config, one, id))]
        if unknown:
            names = ", ".join(unknown)
            raise ConfigError(f"{self.text}: the config of {model_type} has no {names}")
        torch.manual_seed(self.seed)
        try:
            model = AutoModel.from_config(AutoConfig.for_model(model_type, **sizes))
        except Exception as error:  # configs and models raise different errors for bad sizes
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ConfigError(f"{self.text}: invalid model sizes ({reason})") from error
        with storage_errors(folder):
            model.save_pretrained(folder)
