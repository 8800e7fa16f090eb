from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from splits import split_of
from tightrope.artifacts.files import read_json, sha256
from tightrope.inputs.arrays import stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.quantize import quantize_onnx
from tightrope.int8.sensitivity import measure_sensitivity, sensitivities
from tightrope.int8.switched_model import SwitchedModel
from tightrope.logit_distance import mean_divergence, relative_error
from tightrope.onnx.file import load_onnx
from tightrope.onnx.session import run_onnx
from tightrope.onnx.weights import weighted_nodes
from tiny_model import LONGEST, TinyModel

NAME = "bert.encoder.layer.0.output.dense"


@pytest.fixture(scope="module")
def record(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> dict:
    target = tmp_path_factory.mktemp("sensitivity") / "u8s8-minmax-24.json"
    measure_sensitivity(
        tiny.simplified,
        tiny.u8s8,
        tiny.split("calibration"),
        tiny.checkpoint,
        target,
        samples=16,
        max_sequence=LONGEST,
        threads=1,
        libraries={},
    )
    return read_json(target)


def test_it_has_every_operator_and_says_of_what_it_was_made(tiny: TinyModel, record: dict) -> None:
    nodes = weighted_nodes(load_onnx(tiny.simplified))
    assert set(record["operators"]) == {node.name for node in nodes}
    assert (record["samples"], record["schema"]) == (16, 1)
    assert record["quantized_sha256"] == sha256(tiny.u8s8)


def test_an_operators_numbers_are_those_of_a_file_with_it_alone_in_int8(
    tiny: TinyModel, record: dict, tmp_path: Path
) -> None:
    others = [name for name in record["operators"] if name != NAME]
    paths = (tiny.simplified, tiny.minmax, tmp_path / "a.onnx")
    quantize_onnx(*paths, scheme="u8s8", repair={"float": others})
    examples = read_split(split_of(tiny.data, "calibration"))[:16]
    batch = stack(load_encoder(tiny.checkpoint, max_sequence=LONGEST)(examples))
    found, expected = (
        run_onnx(load_onnx(path), [batch], threads=1)[0].tolist()
        for path in (tmp_path / "a.onnx", tiny.simplified)
    )
    fields = record["operators"][NAME]
    assert fields["logit_error"] == pytest.approx(relative_error(found, expected), rel=0.1)
    assert fields["kl"] == pytest.approx(mean_divergence(expected, found), rel=0.5, abs=1e-9)
    assert fields["agreement"] == np.mean(np.argmax(found, 1) == np.argmax(expected, 1))
    assert 15 < fields["sqnr_db"] < 60


def test_it_tells_how_many_operators_are_done(
    tiny: TinyModel, told: Callable[[], dict[str, list[int]]]
) -> None:
    examples = read_split(tiny.split("calibration"))[:4]
    rows = load_encoder(tiny.checkpoint, max_sequence=LONGEST)(examples)
    model = SwitchedModel(tiny.simplified, tiny.u8s8, threads=1)
    sensitivities(model, rows[:1])
    steps = len(model.operators)
    expected = [*range(steps), steps - 0.01 * steps, steps]
    assert told()["sensitivity"] == pytest.approx([100 * n / steps for n in expected], abs=1)
