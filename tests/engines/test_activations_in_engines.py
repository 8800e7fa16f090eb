"""A model whose activation was swapped gives the same logits in engines of the CPU."""

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from splits import prepare_splits, split_of
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.checkpoint.source import prepare_checkpoint
from tightrope.engine_table import ENGINES
from tightrope.engines.build import build_engine
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays
from tightrope.jobs.child import supervised
from tightrope.onnx.file import load_onnx
from tiny_model import EXECUTION, LIMITS, OPTIONS

# weights so large that the activation decides what the model answers
BERT = (
    "scratch:bert?hidden_size=32&num_hidden_layers=1&num_attention_heads=2&intermediate_size=64"
    "&vocab_size=200&max_position_embeddings=64&initializer_range=0.5"
)
# not those that compile C++, which take half a minute each: tests/unit/test_fast_swish.py
ENGINES_AND_OPTIONS: dict[str, dict[str, Any]] = {
    "pytorch": {},
    "torchscript": {},
    "onnxruntime": OPTIONS["onnxruntime"],
    "openvino": {**OPTIONS["openvino"], "buckets": None},
    "openvino from pytorch": {
        "route": "pytorch",
        "blobs": False,
        "static_programs": None,
        "buckets": None,
    },
    "tvm": {"buckets": {"batch": [2], "sequence": [16]}},
}


class Swapped(NamedTuple):
    """The folder of a model with fast_swish, and its logits of `batch`, also with gelu."""

    folder: Path
    logits: np.ndarray
    with_gelu: np.ndarray

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint/checkpoint.json"

    @property
    def onnx(self) -> Path:
        return self.folder / "model.simplified.onnx"


def batch() -> Arrays:
    """Two texts of 16 tokens, one of them padded."""
    ids = np.random.default_rng(0).integers(5, 200, (2, 16))
    mask = np.ones_like(ids)
    mask[1, 9:] = 0
    return {"input_ids": ids, "attention_mask": mask}


def make_model(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Run in a child: the chain up to the simplified ONNX, and logits by hand."""
    import torch
    from tightrope.model.activations import FastSwish
    from tightrope.model.changes import Changes
    from tightrope.onnx.export import export_onnx
    from tightrope.onnx.simplify import simplify_onnx
    from tightrope.training.train import TrainingSettings, train_model
    from transformers import BertForSequenceClassification

    source, checkpoint = folder / "source/checkpoint.json", folder / "checkpoint/checkpoint.json"
    data, onnx = folder / "data/data.json", folder / "model.onnx"
    sizes = {"train": None, "evaluation": 8}
    prepare_splits(data, source="random", columns={}, splits=sizes, pool=8, seed=0)
    prepare_checkpoint(source, source=BERT, expected_sha256=None, seed=0)
    changes = Changes("fast_swish")
    settings = TrainingSettings(recipe=None, inputs={}, changes=changes, threads=1, seed=0)
    train_model(
        checkpoint, settings, source=source, data=split_of(data, "train"), terminal=io.StringIO()
    )
    export_onnx(checkpoint, onnx, threads=1)
    simplify_onnx(
        onnx, checkpoint, split_of(data, "timing"), folder / "model.simplified.onnx", threads=1
    )
    model = BertForSequenceClassification.from_pretrained(folder / "checkpoint").eval()
    given = {name: torch.from_numpy(array) for name, array in batch().items()}
    with torch.inference_mode():
        gelu = model(**given).logits.numpy()
        model.bert.encoder.layer[0].intermediate.intermediate_act_fn = FastSwish()
        return model(**given).logits.numpy(), gelu


def answer(path: Path, given: Arrays) -> np.ndarray:
    """Run in a child: logits of the batch."""
    return load_engine(path, threads=1)[0](given)


@pytest.fixture(scope="module")
def swapped(tmp_path_factory: pytest.TempPathFactory) -> Swapped:
    folder = tmp_path_factory.mktemp("fast_swish")
    return Swapped(folder, *supervised(make_model, folder, limits=LIMITS))


def test_the_activation_is_what_the_model_answers_by(swapped: Swapped) -> None:
    difference = np.linalg.norm(swapped.with_gelu - swapped.logits)
    assert difference > 0.02 * np.linalg.norm(swapped.logits)


@pytest.mark.parametrize("name", ENGINES_AND_OPTIONS)
def test_fast_swish_gives_the_same_logits_in_each_engine(
    name: str, swapped: Swapped, tmp_path: Path
) -> None:
    engine, options = name.partition(" ")[0], ENGINES_AND_OPTIONS[name]
    by_torch = ENGINES[engine].source == "checkpoint" or options.get("route") == "pytorch"
    source, manifest = swapped.checkpoint if by_torch else swapped.onnx, tmp_path / "engine.json"
    facts: dict[str, Any] = {"execution": EXECUTION, "options": options}
    build_engine(f"cpu-{engine}-fp32", source, manifest, **facts)
    built = read_manifest(manifest, EngineManifest)
    assert built["status"] == "ok", built["reason"]
    found = supervised(answer, manifest, batch(), limits=LIMITS)
    np.testing.assert_allclose(found, swapped.logits, rtol=1e-4, atol=1e-4)


def test_the_onnx_files_hold_standard_operators_alone(swapped: Swapped) -> None:
    for name in ("model.onnx", "model.simplified.onnx"):
        model = load_onnx(swapped.folder / name)
        assert {node.domain for node in model.graph.node} == {""}
        assert not model.functions
        assert {one.domain for one in model.opset_import} == {""}


def test_rows_that_nobody_reads_are_not_computed_behind_fast_swish_either(
    swapped: Swapped,
) -> None:
    """The feed-forward of the last layer is computed for the first token alone."""
    before, after = (load_onnx(swapped.folder / f"model{one}.onnx") for one in ("", ".simplified"))
    slices = [sum(n.op_type == "Slice" for n in one.graph.node) for one in (before, after)]
    assert slices[1] > slices[0]
