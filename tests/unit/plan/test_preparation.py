"""Which files are made between the ONNX file of a model and the engine of a variant."""

from typing import Any

import pytest
from tightrope.plan.preparation import prepared
from tightrope.variants import parse

CONFIG: dict[str, Any] = {"calibration": {"reduce_range": False}}
FOLDER = "artifacts/m"
PLAIN = [f"{FOLDER}/calibration/minmax-64.json", f"{FOLDER}/quantized/u8s8-minmax-64.onnx"]


@pytest.mark.parametrize(
    ("variant", "files"),
    [
        ("cpu-onnxruntime-fp32", []),
        ("cpu-onnxruntime-int8-minmax-64", PLAIN),
        (
            "cpu-onnxruntime-int8-auto-minmax-64",
            [
                *PLAIN,
                f"{FOLDER}/sensitivity/u8s8-minmax-64.json",
                f"{FOLDER}/costs/u8s8-minmax-64.json",
                f"{FOLDER}/quantized/u8s8-minmax-64-auto.onnx",
            ],
        ),
        ("cpu-openvino-int8-nncf-64", [f"{FOLDER}/calibration/nncf-64.json"]),
    ],
)
def test_each_file_before_the_engine_is_named_but_the_search(
    variant: str, files: list[str]
) -> None:
    assert prepared(CONFIG, [("m", parse(variant))]) == {"m": {variant: files}}
