"""An ONNX file of images of another's making: given the pipeline's input, or refused by name."""

import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_text import drawn, onnx_model
from splits import prepare_digits
from tightrope.artifacts.files import write_json
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.checkpoint.source import prepare_checkpoint
from tightrope.errors import TightropeError
from tightrope.onnx.file import signature_of
from tightrope.onnx.imported import class_count, import_checkpoint, original_outputs, standard_model
from tightrope.onnx.interface import standardized
from tightrope.onnx.session import run_onnx
from tightrope.signature import IMAGE, of_images

CLASSES = 10
SIZE = (6, 8)
INPUTS = {"pixel_values": "image"}
WEIGHTS = drawn(CLASSES, 3, 1, 1)
# logits: the mean over the image of a weighted sum of its channels
TEXT = """net ({}) => (float[n, 10] scores) {{
    {inner} = Conv ({name}, weights)
    pooled = GlobalAveragePool ({inner})
    scores = Flatten (pooled)
}}"""


def small_model(
    shape: str = "float[n, 3, h, w]", name: str = "image", inner: str = "weighted", others: str = ""
) -> onnx.ModelProto:
    text = TEXT.format(f"{shape} {name}{others}", name=name, inner=inner)
    return onnx_model(text, weights=WEIGHTS)


def pixels(*size: int) -> dict[str, np.ndarray]:
    return {"pixel_values": drawn(2, 3, *size, seed=1)}


def expected() -> np.ndarray:
    return pixels(*SIZE)["pixel_values"].mean(axis=(2, 3)) @ WEIGHTS[:, :, 0, 0].T


def require_answers(model: onnx.ModelProto) -> None:
    found = run_onnx(model, [pixels(*SIZE)], threads=1)[0]
    np.testing.assert_allclose(found, expected(), atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        small_model(),
        small_model("float[n, 3, 6, 8]"),
        small_model("float[n, c, h, 8]"),
        small_model(inner="pixel_values"),  # a tensor inside
        small_model(name="pixel_values"),
    ],
)
def test_it_takes_the_pipelines_name_and_size_and_answers_the_same(model: onnx.ModelProto) -> None:
    names = {"pixel_values": model.graph.input[0].name}
    found = standardized(model, names, source="onnx:m", size=SIZE)
    assert signature_of(found) == of_images(*SIZE)
    assert [one.name for one in found.graph.output] == ["logits"]
    assert class_count(found) == CLASSES
    require_answers(found)


NAMED = "expected is image alone; say its name with the model's key `inputs: {pixel_values: NAME}`"
FIXED = "is fixed to any x 3 x any x 9 (batch x channels x height x width), preprocessor_config"


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (small_model(name="pixels"), f"its inputs are pixels; {NAMED}"),
        (small_model(others=", float[n] mask"), "its inputs are image, mask; expected is image al"),
        (
            small_model("float16[n, 3, h, w]"),
            "input image is no float32 [batch, 3, height, width] but float16 any x 3 x any x any; ",
        ),
        (small_model("float[n, 1, 6, 8]"), "[batch, 3, height, width] but float32 any x 1 x 6 x 8"),
        (small_model("float[n, 3, 6]"), "[batch, 3, height, width] but float32 any x 3 x 6; exp"),
        (small_model("float[1, 3, 6, 8]"), "is fixed to 1 x 3 x 6 x 8; export it with a dynamic b"),
        (small_model("float[n, 3, h, 9]"), f"{FIXED}.json beside it makes 6 x 8 pixels; put"),
    ],
)
def test_inputs_that_do_not_fit_are_named(model: onnx.ModelProto, reason: str) -> None:
    with pytest.raises(TightropeError, match=f"^onnx:m: .*{re.escape(reason)}"):
        standardized(model, INPUTS, source="onnx:m", size=SIZE)


def prepared(folder: Path) -> Path:
    """The manifest of the source, after prepare_checkpoint."""
    (folder / "own").mkdir(parents=True)
    onnx.save(small_model(), folder / "own/small.onnx")
    size = {"height": SIZE[0], "width": SIZE[1]}
    processor = {"image_processor_type": "ViTImageProcessor", "size": size}
    write_json(folder / "own/preprocessor_config.json", processor)
    manifest = folder / "source/checkpoint.json"
    source = f"onnx:{folder}/own/small.onnx"
    prepare_checkpoint(manifest, source=source, expected_sha256=None, seed=0, task=IMAGE)
    return manifest


def test_a_file_is_kept_with_its_processor_in_the_order_of_the_labels(tmp_path: Path) -> None:
    data = prepare_digits(tmp_path / "data.json")
    source, kept = prepared(tmp_path), tmp_path / "checkpoint/checkpoint.json"
    keep = partial(import_checkpoint, kept, source=source, data=data, inputs=INPUTS)
    keep(terminal=sys.stdout)
    manifest = read_manifest(kept, CheckpointManifest)
    assert set(manifest["files"]) == {"model.onnx", "preprocessor_config.json"}
    assert (manifest["task"], manifest["height"], manifest["width"]) == (IMAGE, *SIZE)
    assert manifest["labels"] == [str(digit) for digit in range(10)]
    assert manifest["parameters"] == WEIGHTS.size
    require_answers(standard_model(kept))
    # the outputs of the file have these names
    names = [str(digit) for digit in (3, 1, 4, 0, 5, 9, 2, 6, 8, 7)]
    keep(labels=names, terminal=sys.stdout)
    assert read_manifest(kept, CheckpointManifest)["labels"] == manifest["labels"]
    (found,) = original_outputs(kept, [pixels(*SIZE)], threads=1)
    np.testing.assert_allclose(found[:, [int(name) for name in names]], expected(), atol=1e-5)
