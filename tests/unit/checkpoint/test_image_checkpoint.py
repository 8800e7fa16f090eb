"""A checkpoint of a model of images is taken with its image processor, or refused in one line."""

import json
from pathlib import Path

import pytest
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import SourceManifest
from tightrope.checkpoint.prepare import prepare_checkpoint as prepare
from tightrope.checkpoint.source import local_files
from tightrope.errors import ConfigError, TightropeError
from tightrope.inputs.image_settings import load_settings, save_settings
from tightrope.signature import IMAGE

TINY = "scratch:convnext?num_stages=2&hidden_sizes=[8,16]&depths=[1,2]&image_size=32"


def prepare_checkpoint(folder: Path, source: str, task: str = IMAGE) -> dict:
    manifest = folder / "checkpoint.json"
    prepare(manifest, source=source, expected_sha256=None, seed=0, task=task)
    return read_manifest(manifest, SourceManifest)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    prepare_checkpoint(folder, TINY)
    return folder


def test_scratch_makes_a_convnext_of_given_stages(tiny: Path, tmp_path: Path) -> None:
    manifest = read_manifest(tiny / "checkpoint.json", SourceManifest)
    known = (manifest["task"], manifest["model_type"], manifest["architecture"])
    assert known == (IMAGE, "convnext", "ConvNextModel")
    assert json.loads((tiny / "config.json").read_text())["hidden_sizes"] == [8, 16]
    assert load_settings(tiny).height == 32
    prepare_checkpoint(tmp_path, TINY)
    assert sha256(tmp_path / "model.safetensors") == sha256(tiny / "model.safetensors")


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ("hidden_sizes=[8,16]&depths=[1,1]", "invalid model sizes"),
        ("hidden_sizes=8", "invalid model sizes"),
        ("hidden_act=no&depths=[1,1,1,1]", "invalid model sizes"),
        ("num_channels=1", r"config\.json: 1-channel images are not supported yet"),
    ],
)
def test_sizes_that_make_no_convnext_are_one_line(tmp_path: Path, sizes: str, said: str) -> None:
    with pytest.raises(TightropeError, match=said) as caught:
        prepare_checkpoint(tmp_path, f"scratch:convnext?{sizes}")
    assert "\n" not in str(caught.value)


def test_the_image_processor_is_copied_and_is_an_input(tiny: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    prepare_checkpoint(source, TINY)
    save_settings(source, load_settings(tiny).resized(48, 40))
    manifest = prepare_checkpoint(tmp_path / "copy", f"path:{source}")
    assert "preprocessor_config.json" in manifest["files"]
    assert load_settings(tmp_path / "copy").width == 40
    files = local_files(f"path:{source}", task=IMAGE)
    assert str(source / "preprocessor_config.json") in files
    (source / "preprocessor_config.json").write_text(
        '{"image_processor_type": "SamImageProcessor"}'
    )
    with pytest.raises(TightropeError, match="SamImageProcessor is not known; known are Beit"):
        prepare_checkpoint(tmp_path / "copy", f"path:{source}")
    assert not (tmp_path / "copy/checkpoint.json").exists()


def test_a_model_of_another_task_is_refused(tiny: Path, tmp_path: Path) -> None:
    texts = "scratch:bert?hidden_size=8&num_attention_heads=2&num_hidden_layers=1"
    with pytest.raises(TightropeError, match="'bert' cannot be used: transformers has no model"):
        prepare_checkpoint(tmp_path, texts)
    with pytest.raises(TightropeError, match="no model for text-classification of that kind"):
        prepare_checkpoint(tmp_path, f"path:{tiny}", "text-classification")


def test_an_onnx_file_of_images_needs_its_image_processor_beside_it(tmp_path: Path) -> None:
    source = f"onnx:{tmp_path / 'model.onnx'}"
    with pytest.raises(ConfigError, match="there is no such file"):
        local_files(source, task=IMAGE)
    (tmp_path / "model.onnx").write_bytes(b"not read here")
    with pytest.raises(ConfigError, match="there is no preprocessor_config"):
        local_files(source, task=IMAGE)
    assert local_files(source) == [str(tmp_path / "model.onnx")]
    (tmp_path / "preprocessor_config.json").write_text("{}")
    assert local_files(source, task=IMAGE)[1:] == [str(tmp_path / "preprocessor_config.json")]
