"""An ONNX file of images of another's making: given the pipeline's input, or refused by name.

One with its image processor, from the file to answers: tests/pages/test_own_onnx.py.
"""

import re

import numpy as np
import onnx
import pytest
from onnx_text import drawn, onnx_model
from tightrope.errors import TightropeError
from tightrope.onnx.file import signature_of
from tightrope.onnx.imported import class_count, standardized
from tightrope.onnx.session import run_onnx
from tightrope.signature import of_images

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
    pixels = drawn(2, 3, *SIZE, seed=1)
    (logits,) = run_onnx(found, [{"pixel_values": pixels}], threads=1)
    expected = pixels.mean(axis=(2, 3)) @ WEIGHTS[:, :, 0, 0].T
    np.testing.assert_allclose(logits, expected, atol=1e-5)


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
