"""A tiny ConvNeXt that has learned some of the digits, and every file made from it."""

from pathlib import Path

from checkpoints import make_checkpoint
from splits import prepare_digits
from tightrope.jobs.child import supervised
from tightrope.signature import IMAGE
from tiny_model import LIMITS, TinyModel, make_onnx_files, model_files

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
    prepare_digits(model.data, train=800, evaluation=80, pool=40)
    make_checkpoint(folder, ARCHITECTURE, model.split("train"), task=IMAGE, recipe=RECIPE)
    make_onnx_files(model, longest=1)
