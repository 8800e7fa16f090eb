"""An ONNX file that onnxruntime.quantization has quantized: engines run it as it is."""

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.checkpoint.source import prepare_checkpoint
from tightrope.engines.build import build_engine
from tightrope.engines.load import load_engine
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.jobs.child import supervised
from tightrope.machine.host import describe_host, saturates
from tightrope.measure.audit import audit_variant
from tightrope.onnx.edit import graphs_in
from tightrope.onnx.file import load_onnx
from tightrope.onnx.given_qdq import is_quantized
from tightrope.onnx.session import run_onnx
from tiny_model import (
    EXECUTION,
    LIMITS,
    LONGEST,
    OPTIONS,
    TinyModel,
    artifacts_of,
    build_variant,
    evaluation_rows,
    model_files,
    name_variant,
)

# the norm of the difference of a batch's logits over the norm of its logits
FLOAT, INTEGER = 1e-4, 0.05


class Samples(CalibrationDataReader):
    """The encoded calibration texts in pairs, the shorter one padded."""

    def __init__(self, model: TinyModel) -> None:
        encode = load_encoder(model.checkpoint, max_sequence=LONGEST)
        rows = list(encode(read_split(model.split("calibration"))))
        self.left: Iterator[Arrays] = (stack(rows[n : n + 2]) for n in range(0, len(rows), 2))

    def get_next(self) -> Arrays | None:
        return next(self.left, None)


def run_chain(folder: Path, original: TinyModel, model: TinyModel) -> None:
    """From the quantized file to the simplified one, in a child, as the rules do."""
    from tightrope.onnx.export import export_onnx
    from tightrope.onnx.simplify import simplify_onnx
    from tightrope.training.train import TrainingSettings, train_model

    own = folder / "own"
    own.mkdir()
    quantize_static(
        original.simplified,
        own / "quantized.onnx",
        Samples(original),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=saturates(describe_host()),
        # sums with an attention mask have the range of its large negative number
        op_types_to_quantize=["Gather", "Gemm", "MatMul"],
    )
    shutil.copy(original.checkpoint.parent / "tokenizer.json", own)
    source, place = folder / "source/checkpoint.json", f"onnx:{own}/quantized.onnx"
    with pytest.raises(TightropeError, match="is quantized already"):
        prepare_checkpoint(source, source=place, expected_sha256=None, seed=0)
    prepare_checkpoint(source, source=place, expected_sha256=None, seed=0, quantized=True)
    inputs = {name: name for name in ("input_ids", "attention_mask", "token_type_ids")}
    settings = TrainingSettings(recipe=None, inputs=inputs, seed=0, threads=1)
    files = {"source": source, "data": model.split("train")}
    train_model(model.checkpoint, settings, **files, terminal=io.StringIO())
    export_onnx(model.checkpoint, model.onnx, threads=1)
    simplify_onnx(model.onnx, model.checkpoint, model.split("timing"), model.simplified, threads=1)


@pytest.fixture(scope="module")
def given(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    """The files made from the quantized file, on the data of the original."""
    folder = tmp_path_factory.mktemp("given")
    model = model_files(folder)._replace(data=tiny.data)
    supervised(run_chain, folder, tiny, model, limits=LIMITS)
    return model


def answer(path: Path, batches: list[Arrays]) -> list[np.ndarray]:
    run, _ = load_engine(path, threads=1)
    return [run(batch) for batch in batches]


def answer_of_file(path: Path, batches: list[Arrays]) -> list[np.ndarray]:
    return run_onnx(load_onnx(path), batches, threads=1)


@pytest.fixture(scope="module")
def batches(given: TinyModel) -> list[Arrays]:
    rows = evaluation_rows(given)
    return [stack(rows[:1]), stack(rows[:16])]


def require_near(found: list[np.ndarray], expected: list[np.ndarray], tolerance: float) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert np.linalg.norm(ours - theirs) <= tolerance * np.linalg.norm(theirs)


def test_the_file_of_the_engines_has_its_qdq_and_the_simplified_one_has_none(
    given: TinyModel, tiny: TinyModel
) -> None:
    assert is_quantized(load_onnx(given.onnx))
    simplified = load_onnx(given.simplified)
    assert not is_quantized(simplified)
    products = [
        sum(node.op_type in ("MatMul", "Gemm") for node in graph.node)
        for model in (simplified, load_onnx(tiny.simplified))
        for graph in graphs_in(model.graph)
    ]
    assert products[0] == products[1]


def test_facts_of_the_model_are_those_of_the_float_model(given: TinyModel, tiny: TinyModel) -> None:
    kept = read_manifest(given.checkpoint, CheckpointManifest)
    original = read_manifest(tiny.checkpoint, CheckpointManifest)
    assert kept["labels"] == original["labels"]
    assert kept["vocabulary"] == original["vocabulary"]
    assert kept["parameters"] == pytest.approx(original["parameters"], rel=0.05)


def test_the_float_model_answers_as_the_original_but_for_rounded_weights(
    given: TinyModel, tiny: TinyModel, batches: list[Arrays]
) -> None:
    found, expected = (
        supervised(answer_of_file, path, batches, limits=LIMITS)
        for path in (given.simplified, tiny.simplified)
    )
    require_near(found, expected, INTEGER)


@pytest.mark.parametrize(
    ("engine", "tolerance"), [("onnxruntime", INTEGER / 5), ("openvino", INTEGER)]
)
def test_an_engine_answers_as_the_file_itself_and_computes_products_in_int8(
    engine: str, tolerance: float, given: TinyModel, batches: list[Arrays], tmp_path: Path
) -> None:
    variant = name_variant(engine, "given")
    path = build_variant(given, variant, tmp_path / "engine.json", source=given.onnx)
    built = json.loads(path.read_text())
    assert built["status"] == "ok", built["reason"]
    expected = supervised(answer_of_file, given.onnx, batches, limits=LIMITS)
    require_near(supervised(answer, path, batches, limits=LIMITS), expected, tolerance)
    integers = sum(counts.get("int8", 0) for counts in built["executed"].values())
    assert integers >= 12


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_engines_in_float_run_the_float_model(
    engine: str, given: TinyModel, batches: list[Arrays], tmp_path: Path
) -> None:
    path = build_variant(given, name_variant(engine, "fp32"), tmp_path / "engine.json")
    assert json.loads(path.read_text())["status"] == "ok"
    expected = supervised(answer_of_file, given.simplified, batches, limits=LIMITS)
    require_near(supervised(answer, path, batches, limits=LIMITS), expected, FLOAT)


def test_it_is_audited_against_its_float_model(given: TinyModel, tmp_path: Path) -> None:
    variant = name_variant("onnxruntime", "given")
    path = build_variant(given, variant, tmp_path / "engine.json", source=given.onnx)
    record = tmp_path / "audit.json"
    artifacts = artifacts_of(given, path)
    settings = {"variant": str(variant), "max_sequence": LONGEST, "execution": EXECUTION}
    audit_variant(artifacts, None, record, **settings)
    found = json.loads(record.read_text())
    assert (found["status"], found["tensors"]) == ("ok", [])
    assert found["answers"]["agreement"] > 0.9


def test_a_file_without_products_in_int8_fails_with_what_it_ran_in(
    given: TinyModel, tmp_path: Path
) -> None:
    path = tmp_path / "engine.json"
    options = OPTIONS["onnxruntime"]
    name = str(name_variant("onnxruntime", "given"))
    build_engine(name, given.simplified, path, execution=EXECUTION, options=options)
    built = json.loads(path.read_text())
    assert built["status"] == "failed"
    assert built["reason"] == "ran in fp32: no matrix product ran in int8 or fp8"
