"""Outputs and skip connections are rounded in training where ONNX Runtime's files round them."""

import io
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from checkpoints import learnt_checkpoint
from onnx import ModelProto
from tightrope.int8.quantize import onnxruntime_qdq
from tightrope.int8.ranges import with_learnt_ranges
from tightrope.int8.schemes import SCHEMES
from tightrope.model.module import logits_only
from tightrope.onnx.edit import weighted_nodes
from tightrope.onnx.file import save_onnx, simplified
from tightrope.onnx.session import run_onnx
from tightrope.training.examples import Subject, image_subject
from tightrope.training.quantization_aware import (
    GRIDS_WITH_OUTPUTS,
    OUTPUT,
    calibrated,
    fake_quantized,
    places_of,
)
from transformers import (
    ConvNextConfig,
    ConvNextForImageClassification,
    MobileNetV2Config,
    MobileNetV2ForImageClassification,
)

# no tensor, whose copy would start threads in the collection of tests that fork
PIXELS = np.random.default_rng(0).normal(size=(24, 3, 32, 32)).astype(np.float32)
GRID = GRIDS_WITH_OUTPUTS["s8s8"]
USUAL = {"outputs": True, "activations": "symmetric"}


def convnext() -> Any:
    sizes = {"hidden_sizes": [16, 32], "depths": [1, 2], "num_stages": 2, "image_size": 32}
    config = ConvNextConfig(**sizes, layer_scale_init_value=0.5, num_labels=4)
    return ConvNextForImageClassification(config)


def mobilenet() -> Any:
    """Of its blocks the first three, of which one adds what it reads."""
    config = MobileNetV2Config(depth_multiplier=0.25, image_size=32, num_labels=4)
    model = MobileNetV2ForImageClassification(config)
    inner: Any = model.mobilenet_v2
    inner.layer = inner.layer[:3]
    assert [block.use_residual for block in inner.layer] == [False, True, False]
    inner.conv_1x1.convolution = torch.nn.Conv2d(8, 1280, 1, bias=False)
    return model


def subject_of(made: Any) -> Subject:
    """Random weights and normalizations."""
    torch.manual_seed(0)
    model = made().eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 2)
            torch.nn.init.normal_(module.bias)
            module.get_buffer("running_var").uniform_(0.5, 2)
        elif getattr(module, "bias", None) is not None:
            torch.nn.init.normal_(module.bias, std=0.3)
    rows = [{"pixel_values": one} for one in PIXELS]
    return image_subject(model, rows, np.arange(len(rows)) % 4)


def exported(model: Any) -> ModelProto:
    """By the older exporter, which takes a tenth of the time; names and forms decide nothing."""
    stream, names = io.BytesIO(), ["pixel_values"]
    axes, options = {"pixel_values": {0: "batch"}}, {"opset_version": 20, "dynamo": False}
    inputs = (torch.from_numpy(PIXELS[:2]),)
    torch.onnx.export(
        *(logits_only(model), inputs, stream),
        **{"input_names": names, "output_names": ["logits"], "dynamic_axes": axes, **options},
    )
    return simplified(onnx.load_from_string(stream.getvalue()))


@pytest.mark.parametrize("made", [convnext, mobilenet])
def test_the_file_of_the_ranges_computes_what_training_does(tmp_path: Path, made: Any) -> None:
    subject = subject_of(made)
    model = subject.model
    float_file = exported(model)
    places = places_of(model, {"pixel_values": torch.from_numpy(PIXELS[:1])})
    quantizers = calibrated(subject, GRID, "cpu", places)
    with torch.no_grad():
        pixels = torch.from_numpy(PIXELS)
        exact = model(pixels).logits.numpy()
        with fake_quantized(model, quantizers, GRID, places):
            given = pixels.clone()
            expected, kept = model(given).logits.numpy(), weakref.ref(given)
            del given
            assert kept() is None, "tensors are forgotten after each call"
        np.testing.assert_array_equal(model(pixels).logits.numpy(), exact)
    pairs = {name: one.range().tolist() for name, one in quantizers.items()}
    learnt = {
        "ranges": {name: pair for name, pair in pairs.items() if not name.endswith(OUTPUT)},
        "outputs": {name: pairs[name + OUTPUT] for name in places},
    }
    weights = {name: one.numpy() for name, one in model.state_dict().items()}
    checkpoint = learnt_checkpoint(tmp_path / "checkpoint", weights, **learnt)
    save_onnx(float_file, tmp_path / "model.onnx")
    found = with_learnt_ranges({}, tmp_path / "model.onnx", checkpoint)
    nodes = [node.name for node in weighted_nodes(float_file)]
    # no other ranges, so that each quantized tensor has a learnt one
    quantized = onnxruntime_qdq(float_file, found, nodes, SCHEMES["u8s8"], USUAL)
    batch = {"pixel_values": PIXELS}
    (answers,) = run_onnx(quantized, [batch], threads=1)
    # logits are rounded too, so that a value on the edge of a step may differ by a whole one
    assert np.abs(answers - expected).mean() < 0.1 * np.abs(exact - expected).mean()
