"""What a run of the tiny project makes with the same bytes each time, and how two runs differ."""

import json

from tiny_project import MODEL, Project

# with this engine alone
ENGINES = {"onnxruntime": ["int8"]}
VARIANTS = ("cpu-pytorch-fp32", "cpu-onnxruntime-int8-minmax-8")
REPRODUCED = (
    "data/pool.jsonl",
    "splits/train.json",
    "splits/evaluation.json",
    "splits/calibration.json",
    "splits/timing.json",
    "source/model.safetensors",
    "checkpoint/model.safetensors",
    "checkpoint/tokenizer.json",
    "model.onnx",
    "model.simplified.onnx",
    "calibration/minmax-8.json",
    "quantized/u8s8-minmax-8.onnx",
)


def predictions(project: Project, variant: str) -> list[int]:
    """The predictions in the accuracy record of a variant."""
    record = project / f"reports/{MODEL}/{variant}.accuracy.json"
    return json.loads(record.read_text())["predictions"]


def differences(project: Project, reference: Project) -> list[str]:
    """The files that are not those of the reference, and those that were left half written."""
    paths = [f"artifacts/{MODEL}/{name}" for name in REPRODUCED]
    found = [
        path for path in paths if (project / path).read_bytes() != (reference / path).read_bytes()
    ]
    found += [one for one in VARIANTS if predictions(project, one) != predictions(reference, one)]
    return found + [path for path in project.files() if path.endswith(".part")]
