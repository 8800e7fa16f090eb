"""Engines of models with sizes that config.json has no field for answer as PyTorch does."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from splits import split_of
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.jobs.child import supervised
from tightrope.model.changes import Changes
from tightrope.model.module import load_module
from tightrope.model.noted_sizes import FIELD
from tightrope.training.train import TrainingSettings, train_model
from tightrope.variants import parse
from tiny_images import BUCKETS
from tiny_model import (
    LIMITS,
    OPTIONS,
    SAMPLES,
    TinyModel,
    build_variant,
    model_files,
    skip_where_emulated,
)

# The norm of the difference of a batch's logits over the norm of its logits.
TOLERANCES = {
    "cpu-pytorch-fp32": 1e-5,
    "cpu-torchscript-fp32": 1e-5,
    "cpu-onnxruntime-fp32": 1e-4,
    f"cpu-onnxruntime-int8-minmax-{SAMPLES}": 0.1,
    "cpu-openvino-fp32": 1e-4,
    "cpu-tvm-fp32": 1e-4,
}


def make_narrow(folder: Path, tiny_images: TinyModel) -> TinyModel:
    """Run in a child: the tiny ConvNeXt with 48 of 64 and 96 of 128 neurons, and its files."""
    from tightrope.checkpoint.prepare import prepare_checkpoint
    from tightrope.int8.calibrate import calibrate
    from tightrope.int8.quantize import quantize_onnx
    from tightrope.onnx.export import export_onnx
    from tightrope.onnx.simplify import simplify_onnx
    from tightrope.signature import IMAGE

    model = model_files(folder)._replace(data=tiny_images.data)
    source = folder / "source" / "checkpoint.json"
    parent = f"path:{tiny_images.checkpoint.parent}"
    prepare_checkpoint(source, source=parent, expected_sha256=None, seed=0, task=IMAGE)
    changes = Changes(prune={"intermediate": 48})
    settings = TrainingSettings(recipe=None, inputs={}, seed=0, threads=1, changes=changes)
    files = {"source": source, "data": model.split("train")}
    train_model(model.checkpoint, settings, **files, terminal=io.StringIO())
    export_onnx(model.checkpoint, model.onnx, threads=1)
    simplify_onnx(model.onnx, model.checkpoint, model.split("timing"), model.simplified, threads=1)
    facts: dict[str, Any] = {"max_sequence": 1, "threads": 1, "percentile": None, "libraries": {}}
    inputs = (model.simplified, model.split("calibration"), model.checkpoint, model.minmax)
    calibrate(*inputs, method="minmax", samples=SAMPLES, **facts)
    quantize_onnx(model.simplified, model.minmax, model.u8s8, scheme="u8s8")
    return model


@pytest.fixture(scope="module")
def narrow(tiny_images: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return supervised(make_narrow, tmp_path_factory.mktemp("narrow"), tiny_images, limits=LIMITS)


@pytest.fixture(scope="module")
def batches(narrow: TinyModel) -> list[Arrays]:
    rows = load_encoder(narrow.checkpoint, max_sequence=1)(
        read_split(split_of(narrow.data, "evaluation"))
    )
    return [stack(rows[:1]), stack(rows[1:4])]


def answer(path: Path, batches: list[Arrays]) -> list[np.ndarray]:
    """Run in a child, which alone starts the runtime's threads."""
    run, _ = load_engine(path, threads=1)
    return [run(batch) for batch in batches]


def reference(folder: Path, batches: list[Arrays]) -> list[np.ndarray]:
    import torch

    module = load_module(folder, torch.float32)
    with torch.inference_mode():
        return [module(torch.from_numpy(one["pixel_values"])).logits.numpy() for one in batches]


def test_the_manifest_and_config_json_say_what_is_smaller(narrow: TinyModel) -> None:
    manifest = read_manifest(narrow.checkpoint, CheckpointManifest)
    assert manifest["prune"]["intermediate"] == 48
    config = json.loads(narrow.checkpoint.with_name("config.json").read_text())
    assert config[FIELD] == {"inner": [48, 96]}


@pytest.mark.parametrize("name", TOLERANCES)
def test_engines_of_a_narrow_convnext_answer_as_pytorch_does(
    name: str, narrow: TinyModel, batches: list[Arrays], tmp_path: Path
) -> None:
    variant = parse(name)
    options = dict(OPTIONS.get(variant.engine, {}))
    if "buckets" in options:
        options["buckets"] = BUCKETS
    path = build_variant(narrow, variant, tmp_path / name / "engine.json", options=options)
    engine = json.loads(path.read_text())
    skip_where_emulated(variant, engine)
    assert engine["status"] == "ok", engine["reason"]
    expected = supervised(reference, narrow.checkpoint.parent, batches, limits=LIMITS)
    for ours, theirs in zip(
        supervised(answer, path, batches, limits=LIMITS), expected, strict=True
    ):
        assert np.linalg.norm(ours - theirs) <= TOLERANCES[name] * np.linalg.norm(theirs)
