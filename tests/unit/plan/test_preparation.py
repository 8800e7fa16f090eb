"""Which files are made between the ONNX file of a model and the engine of a variant."""

from typing import Any

import pytest
from tightrope.plan.job_inputs import prepared, prepared_files
from tightrope.variants import parse

CONFIG: dict[str, Any] = {"calibration": {"reduce_range": False}}
FOLDER = "artifacts/m"
PLAIN = [f"{FOLDER}/calibration/minmax-64.tsv", f"{FOLDER}/quantized/u8s8-minmax-64.tsv"]


@pytest.mark.parametrize(
    ("variant", "files"),
    [
        ("cpu-onnxruntime-fp32", []),
        ("cpu-onnxruntime-int8-minmax-64", PLAIN),
        (
            "cpu-onnxruntime-int8-auto-minmax-64",
            [*PLAIN, f"{FOLDER}/quantized/u8s8-minmax-64-auto.tsv"],
        ),
        ("cpu-openvino-int8-nncf-64", [f"{FOLDER}/calibration/nncf-64.tsv"]),
    ],
)
def test_each_file_before_the_engine_is_named_but_the_search(
    variant: str, files: list[str]
) -> None:
    jobs = [("m", parse("cpu-onnxruntime-int8-minmax-64")), ("m", parse(variant))]
    all_files = prepared_files(CONFIG, jobs)
    assert len(all_files) == len({*all_files})
    assert [all_files[place] for place in prepared(CONFIG, jobs)["m"][variant]] == files
