"""Engines of models with sizes that config.json has no field for answer as PyTorch does."""

import io
import json
from collections.abc import Callable
from functools import cache
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
from tightrope.model.pruning import FIELD
from tightrope.signature import IMAGE, TEXT
from tightrope.training.train import TrainingSettings, train_model
from tightrope.variants import parse
from tiny_images import BUCKETS
from tiny_model import (
    LIMITS,
    LONGEST,
    OPTIONS,
    SAMPLES,
    TinyModel,
    build_variant,
    model_files,
    skip_where_emulated,
)

Expected = Callable[[TinyModel], list[np.ndarray]]
# The norm of the difference of a batch's logits over the norm of its logits.
TOLERANCES = {
    "cpu-pytorch-fp32": 1e-5,
    "cpu-torchscript-fp32": 1e-5,
    "cpu-onnxruntime-fp32": 1e-4,
    f"cpu-onnxruntime-int8-minmax-{SAMPLES}": 0.1,
    "cpu-openvino-fp32": 1e-4,
    "cpu-tvm-fp32": 1e-4,
}


# of a ConvNeXt with 64 and 128 neurons, and of a BERT with two heads
PRUNED = {IMAGE: {"intermediate": 48}, TEXT: {"heads": 1}}
NOTED = {IMAGE: {"inner": [48, 96]}, TEXT: {"heads": 1}}


def make_smaller(folder: Path, parent: TinyModel, task: str) -> TinyModel:
    """Run in a child: a tiny model that is pruned, and its files."""
    from tightrope.checkpoint.source import prepare_checkpoint
    from tightrope.int8.calibrate import calibrate
    from tightrope.int8.quantize import quantize_onnx
    from tightrope.onnx.export import export_onnx
    from tightrope.onnx.simplify import simplify_onnx

    model = model_files(folder)._replace(data=parent.data)
    source = folder / "source" / "checkpoint.json"
    above = f"path:{parent.checkpoint.parent}"
    prepare_checkpoint(source, source=above, expected_sha256=None, seed=0, task=task)
    changes = Changes(prune=PRUNED[task])
    settings = TrainingSettings(recipe=None, inputs={}, seed=0, threads=1, changes=changes)
    files = {"source": source, "data": model.split("train")}
    train_model(model.checkpoint, settings, **files, terminal=io.StringIO())
    export_onnx(model.checkpoint, model.onnx, threads=1)
    simplify_onnx(model.onnx, model.checkpoint, model.split("timing"), model.simplified, threads=1)
    facts: dict[str, Any] = {
        "max_sequence": LONGEST,
        "threads": 1,
        "percentile": None,
        "libraries": {},
    }
    inputs = (model.simplified, model.split("calibration"), model.checkpoint, model.minmax)
    calibrate(*inputs, method="minmax", samples=SAMPLES, **facts)
    quantize_onnx(model.simplified, model.minmax, model.u8s8, scheme="u8s8")
    return model


@pytest.fixture(scope="module")
def narrow(tiny_images: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    folder = tmp_path_factory.mktemp("narrow")
    return supervised(make_smaller, folder, tiny_images, IMAGE, limits=LIMITS)


@pytest.fixture(scope="module")
def few_heads(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    folder = tmp_path_factory.mktemp("heads")
    return supervised(make_smaller, folder, tiny, TEXT, limits=LIMITS)


def batches_of(model: TinyModel) -> list[Arrays]:
    """One example, and three, of which texts are padded."""
    examples = read_split(split_of(model.data, "evaluation"))[:4]
    rows = load_encoder(model.checkpoint, max_sequence=LONGEST)(examples)
    return [stack(rows[:1]), stack(rows[1:4])]


def answer(path: Path, batches: list[Arrays]) -> list[np.ndarray]:
    """Run in a child, which alone starts the runtime's threads."""
    run, _ = load_engine(path, threads=1)
    return [run(batch) for batch in batches]


def reference(folder: Path, batches: list[Arrays]) -> list[np.ndarray]:
    import torch

    module = load_module(folder, torch.float32, attention="eager")
    tensors = [{name: torch.from_numpy(one) for name, one in batch.items()} for batch in batches]
    with torch.inference_mode():
        return [module(**one).logits.numpy() for one in tensors]


@pytest.fixture(scope="module")
def expected() -> Expected:
    """From a model to the logits of its checkpoint in plain attention, each asked once."""

    @cache
    def ask(model: TinyModel) -> list[np.ndarray]:
        return supervised(reference, model.checkpoint.parent, batches_of(model), limits=LIMITS)

    return ask


def test_the_manifest_and_config_json_say_what_is_smaller(
    narrow: TinyModel, few_heads: TinyModel
) -> None:
    for task, model in ((IMAGE, narrow), (TEXT, few_heads)):
        assert read_manifest(model.checkpoint, CheckpointManifest)["prune"] == PRUNED[task]
        config = json.loads(model.checkpoint.with_name("config.json").read_text())
        assert config[FIELD] == NOTED[task]


@pytest.mark.parametrize("name", sorted(TOLERANCES.keys() - {"cpu-tvm-fp32"}))
def test_engines_of_a_narrow_convnext_answer_as_pytorch_does(
    name: str, narrow: TinyModel, expected: Expected, tmp_path: Path
) -> None:
    options = dict(OPTIONS.get(parse(name).engine, {}))
    if "buckets" in options:
        options["buckets"] = BUCKETS
    check(name, narrow, expected(narrow), tmp_path, options)


@pytest.mark.parametrize("name", TOLERANCES)
def test_engines_of_a_bert_with_fewer_heads_answer_as_pytorch_does(
    name: str, few_heads: TinyModel, expected: Expected, tmp_path: Path
) -> None:
    options = dict(OPTIONS.get(parse(name).engine, {}))
    if "buckets" in options:
        # one: TVM compiles four seconds for each
        options["buckets"] = {"batch": [4], "sequence": [LONGEST]}
    check(name, few_heads, expected(few_heads), tmp_path, options)


def test_fewer_heads_become_one_operator_of_attention_too(
    few_heads: TinyModel, expected: Expected, tmp_path: Path
) -> None:
    options = {**OPTIONS["onnxruntime"], "attention_operator": True}
    check("cpu-onnxruntime-fp32", few_heads, expected(few_heads), tmp_path, options)


def check(
    name: str,
    model: TinyModel,
    expected: list[np.ndarray],
    folder: Path,
    options: dict[str, Any],
) -> None:
    """Build the variant and compare its logits with those that are expected."""
    variant = parse(name)
    path = build_variant(model, variant, folder / name / "engine.json", options=options)
    engine = json.loads(path.read_text())
    skip_where_emulated(variant, engine)
    assert engine["status"] == "ok", engine["reason"]
    found = supervised(answer, path, batches_of(model), limits=LIMITS)
    for ours, theirs in zip(found, expected, strict=True):
        assert np.linalg.norm(ours - theirs) <= TOLERANCES[name] * np.linalg.norm(theirs)
