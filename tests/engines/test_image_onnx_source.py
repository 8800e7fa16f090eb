"""A ConvNeXt that comes as an ONNX file of another exporter: engines answer as the original."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from splits import split_of
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.checkpoint.source import prepare_checkpoint
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.calibrate import calibrate
from tightrope.int8.quantize import quantize_onnx
from tightrope.jobs.child import supervised
from tightrope.model.module import load_module, logits_module
from tightrope.signature import IMAGE
from tightrope.variants import parse
from tiny_images import BUCKETS, SIDE
from tiny_model import LIMITS, OPTIONS, SAMPLES, TinyModel, build_variant, model_files

# The norm of the difference of a batch's logits over the norm of its logits.
TOLERANCES = {
    "cpu-onnxruntime-fp32": 1e-4,
    f"cpu-onnxruntime-int8-minmax-{SAMPLES}": 0.1,
    "cpu-openvino-fp32": 1e-4,
}


def export_otherwise(checkpoint: Path, target: Path) -> None:
    """As the exporter of TorchScript makes it: another input name, and every size but 3 free."""
    import torch

    torch.onnx.export(
        logits_module(checkpoint, torch.float32),
        (torch.zeros(2, 3, SIDE, SIDE),),
        str(target),
        input_names=["image"],
        output_names=["scores"],
        dynamic_axes={"image": {0: "n", 2: "h", 3: "w"}, "scores": {0: "n"}},
        opset_version=17,
        dynamo=False,
    )


def run_chain(folder: Path, original: TinyModel, model: TinyModel) -> None:
    """From the file to the quantized one, in a child, as the rules do."""
    from tightrope.onnx.export import export_onnx
    from tightrope.onnx.simplify import simplify_onnx
    from tightrope.training.train import TrainingSettings, train_model

    own = folder / "own"
    own.mkdir()
    export_otherwise(original.checkpoint, own / "convnext.onnx")
    shutil.copy(original.checkpoint.parent / "preprocessor_config.json", own)
    source, place = folder / "source/checkpoint.json", f"onnx:{own}/convnext.onnx"
    prepare_checkpoint(source, source=place, expected_sha256=None, seed=0, task=IMAGE)
    inputs = {"pixel_values": "image"}
    settings = TrainingSettings(recipe=None, inputs=inputs, seed=0, threads=1)
    files = {"source": source, "data": model.split("train")}
    train_model(model.checkpoint, settings, **files, terminal=io.StringIO())
    export_onnx(model.checkpoint, model.onnx, threads=1)
    simplify_onnx(model.onnx, model.checkpoint, model.split("timing"), model.simplified, threads=1)
    facts: dict[str, Any] = {"max_sequence": 1, "threads": 1, "percentile": None, "libraries": {}}
    paths = (model.simplified, model.split("calibration"), model.checkpoint, model.minmax)
    calibrate(*paths, method="minmax", samples=SAMPLES, **facts)
    for scheme in ("u8s8", "s8s8"):
        quantize_onnx(model.simplified, model.minmax, getattr(model, scheme), scheme=scheme)


@pytest.fixture(scope="module")
def own(tiny_images: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    """The files made from the ONNX file, on the data of the original."""
    folder = tmp_path_factory.mktemp("own-onnx")
    model = model_files(folder)._replace(data=tiny_images.data)
    supervised(run_chain, folder, tiny_images, model, limits=LIMITS)
    return model


def answer(path: Path, batches: list[Arrays]) -> list[np.ndarray]:
    run, _ = load_engine(path, threads=1)
    return [run(batch) for batch in batches]


def reference(folder: Path, batches: list[Arrays]) -> list[np.ndarray]:
    import torch

    torch.set_num_threads(1)
    module = load_module(folder, torch.float32)
    with torch.inference_mode():
        return [module(torch.from_numpy(one["pixel_values"])).logits.numpy() for one in batches]


@pytest.fixture(scope="module")
def batches(own: TinyModel) -> list[Arrays]:
    """One image, and sixteen, as the processor beside the file makes them."""
    rows = load_encoder(own.checkpoint, max_sequence=1)(
        read_split(split_of(own.data, "evaluation"))
    )
    return [stack(rows[:1]), stack(rows[:16])]


@pytest.fixture(scope="module")
def expected(tiny_images: TinyModel, batches: list[Arrays]) -> list[np.ndarray]:
    return supervised(reference, tiny_images.checkpoint.parent, batches, limits=LIMITS)


def test_what_is_kept_says_what_the_file_takes(own: TinyModel, tiny_images: TinyModel) -> None:
    kept, original = (
        read_manifest(own.checkpoint, CheckpointManifest),
        read_manifest(tiny_images.checkpoint, CheckpointManifest),
    )
    for key in ("task", "labels", "height", "width"):
        assert kept[key] == original[key]
    assert kept["inputs"] == {"pixel_values": "image"}


@pytest.mark.parametrize("name", TOLERANCES)
def test_engines_answer_as_the_original_in_pytorch(
    name: str,
    own: TinyModel,
    batches: list[Arrays],
    expected: list[np.ndarray],
    tmp_path: Path,
) -> None:
    variant = parse(name)
    options = dict(OPTIONS[variant.engine])
    if "buckets" in options:
        options["buckets"] = BUCKETS
    path = build_variant(own, variant, tmp_path / "engine.json", options=options)
    engine = json.loads(path.read_text())
    assert engine["status"] == "ok", engine["reason"]
    assert engine["inputs"] == [["pixel_values", "float32", ["batch", 3, SIDE, SIDE]]]
    for ours, theirs in zip(
        supervised(answer, path, batches, limits=LIMITS), expected, strict=True
    ):
        assert np.linalg.norm(ours - theirs) <= TOLERANCES[name] * np.linalg.norm(theirs)


def test_convolutions_of_the_file_run_in_int8(own: TinyModel, tmp_path: Path) -> None:
    variant = parse(f"cpu-onnxruntime-int8-minmax-{SAMPLES}")
    engine = json.loads(build_variant(own, variant, tmp_path / "engine.json").read_text())
    assert engine["executed"]["QLinearConv"] == {"int8": 4}
