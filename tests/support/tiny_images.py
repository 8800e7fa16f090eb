"""A tiny ConvNeXt that has learned some of the digits, and every file made from it."""

import io
from pathlib import Path
from typing import Any

from splits import prepare_splits
from tightrope.checkpoint.source import prepare_checkpoint
from tightrope.int8.calibrate import calibrate
from tightrope.jobs.child import supervised
from tightrope.signature import IMAGE
from tiny_model import LIMITS, SAMPLES, TinyModel, model_files

ARCHITECTURE = (
    "scratch:convnext?num_stages=2&hidden_sizes=[16,32]&depths=[1,1]&image_size=16"
    "&layer_scale_init_value=1.0"
)
SIDE = 16
RECIPE = {"epochs": 4, "batch": 32, "learning_rate": 6e-3, "amp": "off"}
BUCKETS = {"batch": [1, 16]}


def make_tiny_images(folder: Path) -> TinyModel:
    """Run the chain up to the quantized ONNX, in a child, as `make_tiny_model` does."""
    model = model_files(folder)
    supervised(run_chain, folder, model, limits=LIMITS)
    return model


def run_chain(folder: Path, model: TinyModel) -> None:
    """What make_tiny_images runs in the child."""
    from tightrope.int8.quantize import quantize_onnx
    from tightrope.onnx.export import export_onnx
    from tightrope.onnx.simplify import simplify_onnx
    from tightrope.training.train import TrainingSettings, train_model

    source = folder / "source" / "checkpoint.json"
    prepare_checkpoint(source, source=ARCHITECTURE, expected_sha256=None, seed=0, task=IMAGE)
    keys: dict[str, Any] = {"columns": {}, "pool": 40, "seed": 0, "task": IMAGE}
    sizes = {"train": 800, "evaluation": 80}
    prepare_splits(model.data, source="digits", splits=sizes, **keys)
    settings = TrainingSettings(recipe=RECIPE, inputs={}, seed=0, threads=1)
    files = {"source": source, "data": model.split("train")}
    train_model(model.checkpoint, settings, **files, terminal=io.StringIO())
    export_onnx(model.checkpoint, model.onnx, threads=1)
    simplify_onnx(model.onnx, model.checkpoint, model.split("timing"), model.simplified, threads=1)
    facts: dict[str, Any] = {"max_sequence": 1, "threads": 1, "percentile": None, "libraries": {}}
    for method in ("minmax", "nncf"):
        target = getattr(model, method)
        inputs = (model.simplified, model.split("calibration"), model.checkpoint, target)
        calibrate(*inputs, method=method, samples=SAMPLES, **facts)
    for scheme in ("u8s8", "s8s8", "e4m3"):
        quantize_onnx(model.simplified, model.minmax, getattr(model, scheme), scheme=scheme)
