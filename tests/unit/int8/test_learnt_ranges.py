"""Modules are found in another program by their weights."""

from pathlib import Path

import numpy as np
from manifests import CHECKPOINT
from onnx_text import onnx_model
from safetensors.numpy import save_file
from tightrope.artifacts.manifest import write_manifest
from tightrope.int8.ranges import LearntRanges, with_learnt_ranges
from tightrope.onnx.file import save_onnx

RANGES = {"first": [-1.0, 2.0], "second": [0.0, 3.0], "head": [-4.0, 1.0]}


def checkpoint_of(folder: Path, weights: dict[str, np.ndarray]) -> Path:
    """A checkpoint with these weights, of which those in RANGES have learnt a range."""
    folder.mkdir()
    stored = {f"{name}.weight": np.ascontiguousarray(one) for name, one in weights.items()}
    save_file(stored, folder / "model.safetensors")
    qat = {"scheme": "u8s8", "ranges": {name: RANGES[name] for name in weights}}
    write_manifest(folder / "checkpoint.json", **CHECKPOINT, qat=qat)
    return folder / "checkpoint.json"


def test_a_tensor_that_several_modules_read_has_the_range_of_all(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    weights = {name: draw.normal(size=(6, 4)).astype(np.float32) for name in RANGES}
    checkpoint = checkpoint_of(tmp_path / "checkpoint", weights)
    assert LearntRanges(checkpoint).of_weights(draw.normal(size=(6, 4))) is None
    lines = [f"[{name}] y_{name} = MatMul (x, w_{name})" for name in weights]
    lines.append(f"logits = Sum ({', '.join(f'y_{name}' for name in weights)})")
    text = f"net (float[n, 4] x) => (float[n, 6] logits) {{ {chr(10).join(lines)} }}"
    model = onnx_model(text, **{f"w_{name}": one.T for name, one in weights.items()})
    save_onnx(model, tmp_path / "model.onnx")
    assert with_learnt_ranges({}, tmp_path / "model.onnx", checkpoint) == {"x": [-4.0, 3.0]}
