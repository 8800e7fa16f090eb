"""The options of ONNX Runtime, on real engines of the tiny model."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import stack
from tightrope.jobs.child import supervised
from tightrope.variants import Variant
from tiny_model import LIMITS, OPTIONS, TinyModel, build_variant, evaluation_rows, name_variant


def logits(path: Path, model: TinyModel) -> np.ndarray:
    """Run in a child: logits of the first evaluation texts."""
    run, _ = load_engine(path, threads=1)
    return run(stack(evaluation_rows(model)[:16]))


@pytest.mark.parametrize("precision", ["fp32", "int8-dynamic"])
def test_fused_operators_run_and_answer_the_same(
    tiny: TinyModel, tmp_path: Path, precision: str
) -> None:
    variant = name_variant("onnxruntime", precision)
    found = []
    for fusions in (False, True):
        options = {**OPTIONS["onnxruntime"], "fusions": fusions, "optimization": "basic"}
        path = build_variant(tiny, variant, tmp_path / f"{fusions}/engine.json", options=options)
        engine = read_manifest(path, EngineManifest)
        assert engine["status"] == "ok", engine.get("reason")
        assert ("SkipLayerNormalization" in engine["executed"]) == fusions
        found.append(supervised(logits, path, tiny, limits=LIMITS))
    tolerance = 1e-4 if precision == "fp32" else 0.05
    np.testing.assert_allclose(found[1], found[0], atol=tolerance * np.abs(found[0]).max())


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_attention_as_one_operator_answers_the_same(
    tiny: TinyModel, built: Callable[[Variant], Path], tmp_path: Path, precision: str
) -> None:
    variant = name_variant("onnxruntime", precision)
    options = {**OPTIONS["onnxruntime"], "attention_operator": True}
    other = build_variant(tiny, variant, tmp_path / "engine.json", options=options)
    found = []
    for asked, path in ((False, built(variant)), (True, other)):
        engine = read_manifest(path, EngineManifest)
        assert engine["status"] == "ok", engine.get("reason")
        assert ("Attention" in engine["executed"]) == asked
        found.append(supervised(logits, path, tiny, limits=LIMITS))
    # rounding before the quantization of the next product may move a value by one step
    tolerance = 1e-4 if precision == "fp32" else 0.02
    np.testing.assert_allclose(found[1], found[0], atol=tolerance * np.abs(found[0]).max())
