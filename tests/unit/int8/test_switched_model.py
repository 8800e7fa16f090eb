from pathlib import Path

import numpy as np
import pytest
from splits import split_of
from tightrope.inputs.arrays import stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.quantize import quantize_onnx
from tightrope.int8.switched_model import SwitchedModel
from tightrope.onnx.file import load_onnx
from tightrope.onnx.session import run_onnx
from tightrope.onnx.weights import weighted_nodes
from tiny_model import TinyModel, evaluation_rows


@pytest.fixture(scope="module")
def model(tiny: TinyModel) -> SwitchedModel:
    return SwitchedModel(tiny.simplified, tiny.u8s8, threads=1)


def logits_of(path: Path, rows: list) -> np.ndarray:
    return run_onnx(load_onnx(path), [stack(rows)], threads=1)[0]


def test_every_operator_with_weights_can_be_chosen(tiny: TinyModel, model: SwitchedModel) -> None:
    names = {node.name for node in weighted_nodes(load_onnx(tiny.simplified))}
    assert set(model.operators) == names
    assert len(names) == 14


def test_all_in_float_is_the_model_in_float(tiny: TinyModel, model: SwitchedModel) -> None:
    rows = evaluation_rows(tiny)[:20]
    np.testing.assert_allclose(model.answers(rows, ()), logits_of(tiny.simplified, rows), atol=2e-4)


def test_all_in_int8_is_the_quantized_file(tiny: TinyModel, model: SwitchedModel) -> None:
    rows = evaluation_rows(tiny)[:20]
    found, expected = model.answers(rows, model.operators), logits_of(tiny.u8s8, rows)
    error = np.abs(expected - logits_of(tiny.simplified, rows)).max()
    # one value at the edge of a step may round the other way
    assert np.abs(found - expected).max() < 0.2 * error


@pytest.mark.parametrize("name", ["bert.encoder.layer.0.output.dense", "classifier"])
def test_one_operator_in_float_is_the_file_with_it_left_out(
    tiny: TinyModel, model: SwitchedModel, tmp_path: Path, name: str
) -> None:
    paths = (tiny.simplified, tiny.minmax, tmp_path / "a.onnx")
    quantize_onnx(*paths, scheme="u8s8", repair={"float": [name]})
    rows = evaluation_rows(tiny)[:20]
    found = model.answers(rows, set(model.operators) - {name})
    error = np.abs(logits_of(tiny.u8s8, rows) - logits_of(tiny.simplified, rows)).max()
    assert np.abs(found - logits_of(tmp_path / "a.onnx", rows)).max() < 0.2 * error
    assert np.abs(found - model.answers(rows, model.operators)).max() > 0


def test_a_smoothed_model_switches_too(tiny: TinyModel, tmp_path: Path) -> None:
    paths = (tiny.simplified, tiny.minmax, tmp_path / "a.onnx")
    quantize_onnx(*paths, scheme="u8s8", repair={"smoothquant": 0.5})
    model = SwitchedModel(tiny.simplified, tmp_path / "a.onnx", threads=1)
    rows = evaluation_rows(tiny)[:20]
    expected = logits_of(tiny.simplified, rows)
    np.testing.assert_allclose(model.answers(rows, ()), expected, atol=2e-4)
    error = np.abs(logits_of(tmp_path / "a.onnx", rows) - expected).max()
    found = model.answers(rows, model.operators)
    assert np.abs(found - logits_of(tmp_path / "a.onnx", rows)).max() < 0.2 * error


def test_what_is_tried_smoothed_is_what_is_built(tiny: TinyModel, tmp_path: Path) -> None:
    """Query, key and value read one tensor: its factors are those of all three."""
    name = "bert.encoder.layer.0.attention.self.query"
    for target, repair in (("a", {}), ("b", {"float": [name]})):
        paths = (tiny.simplified, tiny.minmax, tmp_path / f"{target}.onnx")
        quantize_onnx(*paths, scheme="u8s8", repair={"smoothquant": 0.8, **repair})
    model = SwitchedModel(tiny.simplified, tmp_path / "a.onnx", threads=1)
    rows = evaluation_rows(tiny)[:20]
    found = model.answers(rows, set(model.operators) - {name})
    built = logits_of(tmp_path / "b.onnx", rows)
    error = np.abs(built - logits_of(tiny.simplified, rows)).max()
    assert np.abs(found - built).max() < 0.2 * error


@pytest.mark.parametrize("in_float", ["none", "all", "downsampling", "depthwise"])
def test_convolutions_switch_with_what_they_give(
    tiny_images: TinyModel, tmp_path: Path, in_float: str
) -> None:
    """ONNX Runtime's convolutions in int8 give rounded values: in float they give exact ones."""
    model = SwitchedModel(tiny_images.simplified, tiny_images.u8s8, threads=1)
    chosen = {
        "none": [],
        "all": model.operators,
        "downsampling": [name for name in model.operators if "downsampling" in name],
        "depthwise": [name for name in model.operators if "dwconv" in name],
    }[in_float]
    assert chosen or in_float == "none"
    rows = load_encoder(tiny_images.checkpoint, max_sequence=1)(
        read_split(split_of(tiny_images.data, "evaluation"))[:20]
    )
    target, paths = tmp_path / "a.onnx", (tiny_images.simplified, tiny_images.minmax)
    repair = {"float": list(chosen)}
    quantize_onnx(*paths, target, scheme="u8s8", repair=repair, may_stay_in_float=True)
    found = model.answers(rows, set(model.operators) - set(chosen))
    error = np.abs(logits_of(tiny_images.u8s8, rows) - logits_of(tiny_images.simplified, rows))
    assert np.abs(found - logits_of(target, rows)).max() < 0.2 * error.max()
