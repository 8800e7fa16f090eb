from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quantized_files import answers, quantized
from tightrope.inputs.arrays import Arrays, stack
from tightrope.int8.quantize import in_qdq
from tightrope.int8.schemes import SCHEMES
from tightrope.int8.search import SwitchedModel
from tightrope.onnx.edit import copy_of, weighted_nodes
from tightrope.onnx.file import save_onnx
from tiny_convolutions import make_convolutions, pictures, ranges_of
from tiny_model import TinyModel, evaluation_rows


@pytest.fixture(scope="module")
def batch(tiny: TinyModel) -> list[Arrays]:
    return evaluation_rows(tiny)[:20]


def logits_of(model: Any, rows: list[Arrays]) -> np.ndarray:
    return answers(model, [stack(rows)])


def require_same(found: np.ndarray, expected: np.ndarray, floats: np.ndarray) -> None:
    """But for few values at the edge of a step, which may round the other way."""
    assert np.abs(found - expected).mean() < 0.1 * np.abs(expected - floats).mean()


@pytest.mark.parametrize(
    ("name", "repair"),
    [
        ("bert.encoder.layer.0.output.dense", {}),
        ("classifier", {}),
        # query, key and value read one tensor: its factors are those of all three
        ("bert.encoder.layer.0.attention.self.query", {"smoothquant": 0.8}),
    ],
    ids=str,
)
def test_one_operator_in_float_is_the_file_with_it_left_out(tiny, batch, tmp_path, name, repair):
    quantized(tiny, tmp_path / "a.onnx", **repair)
    model = SwitchedModel(tiny.simplified, tmp_path / "a.onnx", threads=1)
    floats = logits_of(tiny.simplified, batch)
    np.testing.assert_allclose(model.answers(batch, ()), floats, atol=2e-4)
    built = logits_of(quantized(tiny, tmp_path / "b.onnx", **repair, float=[name]), batch)
    found = model.answers(batch, set(model.operators) - {name})
    require_same(found, built, floats)
    assert np.abs(found - model.answers(batch, model.operators)).max() > 0


@pytest.mark.parametrize("in_float", [(), ("stem", "half", "deep"), ("depthwise",)], ids=str)
def test_convolutions_switch_with_what_they_give(tmp_path: Path, in_float: tuple[str, ...]) -> None:
    """ONNX Runtime's convolutions in int8 give rounded values: in float they give exact ones."""
    floats = make_convolutions()
    ranges = ranges_of(floats, pictures(16, seed=1))
    names = [node.name for node in weighted_nodes(floats)]
    save_onnx(floats, tmp_path / "float.onnx")
    for file, chosen in (("whole", names), ("part", [one for one in names if one not in in_float])):
        made = in_qdq(copy_of(floats), ranges, chosen, SCHEMES["u8s8"], {})
        save_onnx(made, tmp_path / f"{file}.onnx")
    model = SwitchedModel(tmp_path / "float.onnx", tmp_path / "whole.onnx", threads=1)
    rows = [{"pixel_values": one} for one in pictures(20, seed=2)]
    found = model.answers(rows, set(model.operators) - set(in_float))
    expected = logits_of(tmp_path / "part.onnx", rows)
    require_same(found, expected, logits_of(tmp_path / "float.onnx", rows))
