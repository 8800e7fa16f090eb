"""An ONNX file of images of another's making: given the pipeline's input, or refused by name."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from splits import prepare_splits
from tightrope.artifacts.files import write_json
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.checkpoint.prepare import prepare_checkpoint
from tightrope.errors import TightropeError
from tightrope.onnx.file import signature_of
from tightrope.onnx.imported import (
    class_count,
    import_checkpoint,
    original_outputs,
    standard_model,
)
from tightrope.onnx.interface import standardized
from tightrope.onnx.session import run_onnx
from tightrope.signature import IMAGE, of_images

CLASSES = 10
SIZE = (6, 8)
INPUTS = {"pixel_values": "image"}
WEIGHTS = np.random.default_rng(0).normal(size=(CLASSES, 3, 1, 1)).astype(np.float32)


def small_model(
    *,
    shape: tuple[Any, ...] = ("n", 3, "h", "w"),
    kind: int = TensorProto.FLOAT,
    name: str = "image",
    inner: str = "weighted",
    others: tuple[str, ...] = (),
) -> onnx.ModelProto:
    """Logits: the mean over the image of a weighted sum of its channels."""
    nodes = [
        helper.make_node("Conv", [name, "weights"], [inner]),
        helper.make_node("GlobalAveragePool", [inner], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["scores"]),
    ]
    channels = shape[1] if isinstance(shape[1], int) else 3
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(one, kind, shape) for one in (name, *others)],
        [helper.make_tensor_value_info("scores", kind, ["n", CLASSES])],
        [onnx.numpy_helper.from_array(WEIGHTS[:, :channels].astype(dtype), "weights")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def pixels(*size: int) -> dict[str, np.ndarray]:
    drawn = np.random.default_rng(1).normal(size=(2, 3, *size))
    return {"pixel_values": drawn.astype(np.float32)}


def require_answers(model: onnx.ModelProto) -> None:
    batch = pixels(*SIZE)
    expected = batch["pixel_values"].mean(axis=(2, 3)) @ WEIGHTS[:, :, 0, 0].T
    np.testing.assert_allclose(run_onnx(model, [batch], threads=1)[0], expected, atol=1e-5)


@pytest.mark.parametrize(
    "shape",
    [("n", 3, "h", "w"), ("n", 3, *SIZE), ("n", "c", "h", "w"), (None, 3, None, SIZE[1])],
)
def test_it_takes_the_pipelines_name_and_size_and_answers_the_same(shape: tuple[Any, ...]) -> None:
    model = standardized(small_model(shape=shape), INPUTS, source="onnx:m", size=SIZE)
    assert signature_of(model) == of_images(*SIZE)
    assert [one.name for one in model.graph.output] == ["logits"]
    assert class_count(model) == CLASSES
    require_answers(model)


def test_a_tensor_inside_may_have_the_pipelines_name() -> None:
    given = small_model(inner="pixel_values")
    require_answers(standardized(given, INPUTS, source="onnx:m", size=SIZE))


def test_a_model_that_has_the_name_already_stays_as_it_is() -> None:
    once = standardized(small_model(), INPUTS, source="onnx:m", size=SIZE)
    own = {"pixel_values": "pixel_values"}
    assert standardized(once, own, source="onnx:m", size=SIZE) == once


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"name": "pixels"},
            "its inputs are pixels; expected is image alone; say its name with the model's key "
            "`inputs: {pixel_values: NAME}`",
        ),
        ({"others": ("mask",)}, "its inputs are image, mask; expected is image alone; say its "),
        (
            {"kind": TensorProto.FLOAT16},
            "input image is no float32 [batch, 3, height, width] but float16 any x 3 x any x any; "
            "export it as one",
        ),
        ({"shape": ("n", 1, *SIZE)}, "[batch, 3, height, width] but float32 any x 1 x 6 x 8; exp"),
        ({"shape": ("n", 3, 6)}, "[batch, 3, height, width] but float32 any x 3 x 6; export"),
        (
            {"shape": (1, 3, *SIZE)},
            "input image is fixed to 1 x 3 x 6 x 8; export it with a dynamic batch",
        ),
        (
            {"shape": ("n", 3, "h", 9)},
            "input image is fixed to any x 3 x any x 9 (batch x channels x height x width), "
            "preprocessor_config.json beside it makes 6 x 8 pixels; put the image processor",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_named(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(TightropeError) as caught:
        standardized(small_model(**options), INPUTS, source="onnx:m", size=SIZE)
    assert str(caught.value).startswith("onnx:m: ") and "\n" not in str(caught.value)
    assert reason in str(caught.value)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    manifest = tmp_path_factory.mktemp("digits") / "data.json"
    sizes = {"train": 20, "evaluation": 20}
    prepare_splits(manifest, source="digits", columns={}, splits=sizes, pool=20, seed=0, task=IMAGE)
    return manifest


def prepared(folder: Path, processor: dict[str, Any]) -> Path:
    """The manifest of the source, after prepare_checkpoint."""
    (folder / "own").mkdir(parents=True)
    onnx.save(small_model(), folder / "own/small.onnx")
    write_json(folder / "own/preprocessor_config.json", processor)
    manifest = folder / "source/checkpoint.json"
    source = f"onnx:{folder}/own/small.onnx"
    prepare_checkpoint(manifest, source=source, expected_sha256=None, seed=0, task=IMAGE)
    return manifest


def test_the_file_is_kept_with_its_image_processor_size_and_labels(
    data: Path, tmp_path: Path
) -> None:
    size = {"height": SIZE[0], "width": SIZE[1]}
    source = prepared(tmp_path, {"image_processor_type": "ViTImageProcessor", "size": size})
    kept = tmp_path / "checkpoint/checkpoint.json"
    import_checkpoint(kept, source=source, data=data, inputs=INPUTS)
    manifest = read_manifest(kept, CheckpointManifest)
    assert set(manifest["files"]) == {"model.onnx", "preprocessor_config.json"}
    assert (manifest["task"], manifest["height"], manifest["width"]) == (IMAGE, *SIZE)
    assert manifest["labels"] == [str(digit) for digit in range(10)]
    assert manifest["parameters"] == WEIGHTS.size
    require_answers(standard_model(kept))


def test_predictions_follow_the_labels_of_the_configuration(data: Path, tmp_path: Path) -> None:
    size = {"height": SIZE[0], "width": SIZE[1]}
    source = prepared(tmp_path, {"image_processor_type": "ViTImageProcessor", "size": size})
    kept = tmp_path / "checkpoint/checkpoint.json"
    names = [str(digit) for digit in (3, 1, 4, 0, 5, 9, 2, 6, 8, 7)]
    import_checkpoint(kept, source=source, data=data, inputs=INPUTS, labels=names)
    labels = read_manifest(kept, CheckpointManifest)["labels"]
    batch = pixels(*SIZE)
    given = run_onnx(standardized(small_model(), INPUTS, source="m", size=SIZE), [batch], threads=1)
    found = original_outputs(kept, [batch], threads=1)
    for ours, theirs in zip(found[0], given[0], strict=True):
        assert {labels[index]: logit for index, logit in enumerate(ours)} == {
            names[index]: logit for index, logit in enumerate(theirs)
        }
        assert labels[ours.argmax()] == names[theirs.argmax()]


def test_an_image_processor_that_is_not_known_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(TightropeError, match="SamImageProcessor is not known"):
        prepared(tmp_path, {"image_processor_type": "SamImageProcessor"})
