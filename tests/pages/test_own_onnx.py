"""docs/own-onnx.md: its scripts run as written, and the pipeline takes what they write."""

import csv
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from checkpoints import make_checkpoint
from page_blocks import block, blocks
from programs import printed_in
from splits import prepare_digits, prepare_splits, split_of
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.errors import ConfigError
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.jobs.child import supervised
from tightrope.plan.config_checks import checked
from tightrope.signature import IMAGE
from tiny_model import LIMITS, LONGEST, TinyModel

PAGE = "own-onnx.md"
INPUTS = {name: name for name in ("input_ids", "attention_mask", "token_type_ids", "pixel_values")}
# the words of the page for what the tiny model's outputs are, in their order
WORDS = {"bad": "positive", "good": "negative", "odd": "neutral"}
OWN_NETWORK = """
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3, stride=2),
    torch.nn.BatchNorm2d(8),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(),
    torch.nn.Linear(8, 10),
)
"""
ANSWER = """
import sys

import numpy
import torch
from my_model import model

with torch.inference_mode():
    numpy.save(sys.argv[2], model.eval()(torch.from_numpy(numpy.load(sys.argv[1]))).numpy())
"""


def run_script(code: str, folder: Path, *words: str) -> str:
    """What the code prints in that working directory."""
    (folder / "script.py").write_text(code)
    return printed_in(folder, "script.py", *words)


def logits(checkpoint: Path, target: Path, batches: list[Arrays]) -> list[np.ndarray]:
    """Those of the file that rule export_onnx makes of the checkpoint."""
    from tightrope.onnx.export import export_onnx
    from tightrope.onnx.file import load_onnx
    from tightrope.onnx.session import run_onnx

    export_onnx(checkpoint, target, threads=1)
    return run_onnx(load_onnx(target), batches, threads=1)


def accuracy(folder: Path, data: Path, labels: list[str]) -> float:
    """That of own/text.onnx, on the evaluation split."""
    checkpoint = make_checkpoint(
        folder,
        f"onnx:{folder}/own/text.onnx",
        split_of(data, "train"),
        inputs=INPUTS,
        labels=labels,
    )
    examples = read_split(split_of(data, "evaluation"))
    rows = load_encoder(checkpoint, max_sequence=LONGEST)(examples)
    (found,) = logits(checkpoint, folder / "model.onnx", [stack(rows)])
    return float(np.mean(found.argmax(-1) == [example["label"] for example in examples]))


@pytest.fixture(scope="module")
def exported(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the script for texts has run on the checkpoint of the tiny model."""
    folder = tmp_path_factory.mktemp("texts")
    shutil.copytree(tiny.checkpoint.parent, folder / "checkpoints/my-model")
    told = run_script(block(PAGE, "python", "export_text.py"), folder)
    assert "labels: ['bad', 'good', 'odd']" in told
    return folder


@pytest.fixture(scope="module")
def renamed(tiny: TinyModel, exported: Path) -> Path:
    """The data of the tiny model with the labels of the page, whose order is another."""
    examples = read_split(tiny.split("train"))[:60] + read_split(tiny.split("evaluation"))
    names = read_manifest(tiny.checkpoint, CheckpointManifest)["labels"]
    rows = [(one["text"], WORDS[names[one["label"]]]) for one in examples]
    (exported / "data").mkdir()
    with (exported / "data/reviews_all.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("review", "stars"), *rows])
    prepare_splits(
        exported / "prepared/data.json",
        source=f"files:{exported}/data/reviews_*.csv",
        columns={"text": "review", "label": "stars"},
        splits={"train": None, "evaluation": 60},
        pool=20,
        seed=0,
    )
    return exported / "prepared/data.json"


def configurations() -> list[dict[str, Any]]:
    return [yaml.safe_load(one) for one in blocks(PAGE, "yaml")]


def test_a_text_model_answers_right_with_the_labels_of_the_page(exported, renamed) -> None:
    labels = configurations()[0]["models"]["mine"]["labels"]
    assert labels == list(WORDS.values())
    # in the order of the data it has 0.3
    assert supervised(accuracy, exported, renamed, labels, limits=LIMITS) > 0.9


def test_the_configurations_of_the_page_are_valid(repository, exported, renamed, monkeypatch):
    monkeypatch.chdir(exported)
    texts, images = configurations()
    assert checked(texts)["models"]["mine"]["labels"] == ["positive", "negative", "neutral"]
    with pytest.raises(ConfigError, match=r"own/quantized\.onnx: there is no such file"):
        checked(images)
    (exported / "own/quantized.onnx").touch()
    (exported / "own/preprocessor_config.json").write_text(blocks(PAGE, "json")[0])
    for name in ("train/cat", "val/dog"):
        (exported / "pictures" / name).mkdir(parents=True)
    mine = checked(images)["models"]["mine"]
    assert mine["labels"] == ["dog", "cat"] and mine["quantized"]


def answers(folder: Path, data: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pixels of four images, and the logits of own/images.onnx for them."""
    source, train = f"onnx:{folder}/own/images.onnx", split_of(data, "train")
    checkpoint = make_checkpoint(folder, source, train, task=IMAGE, inputs=INPUTS)
    batch = stack(
        load_encoder(checkpoint, max_sequence=1)(read_split(split_of(data, "evaluation"))[:4])
    )
    (found,) = logits(checkpoint, folder / "model.onnx", [batch])
    return batch["pixel_values"], found


def test_an_image_model_of_ones_own_answers_as_in_pytorch(tmp_path: Path) -> None:
    (tmp_path / "my_model.py").write_text(OWN_NETWORK)
    run_script(block(PAGE, "python", "export_images.py"), tmp_path)
    (document,) = blocks(PAGE, "json")
    (tmp_path / "own/preprocessor_config.json").write_text(document)
    data = prepare_digits(tmp_path / "data/data.json", evaluation=20)
    pixels, found = supervised(answers, tmp_path, data, limits=LIMITS)
    assert pixels.shape == (4, 3, 224, 224)
    np.save(tmp_path / "pixels.npy", pixels)
    run_script(ANSWER, tmp_path, "pixels.npy", "expected.npy")
    np.testing.assert_allclose(found, np.load(tmp_path / "expected.npy"), atol=1e-5)
