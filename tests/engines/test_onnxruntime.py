"""The options of ONNX Runtime, on real engines of the tiny model."""

import numpy as np
import pytest
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.inputs.arrays import stack
from tiny_model import OPTIONS, answers_of, build_variant, evaluation_rows, name_variant

FUSED = {"fusions": True, "optimization": "basic"}
WHOLE = {"attention_operator": True}


@pytest.mark.parametrize(
    ("precision", "options", "operator", "tolerance"),
    [
        ("fp32", FUSED, "SkipLayerNormalization", 1e-4),
        ("int8-dynamic", FUSED, "SkipLayerNormalization", 0.05),
        # rounding before the quantization of the next product may move a value by one step
        ("fp32", WHOLE, "Attention", 1e-4),
        ("int8", WHOLE, "Attention", 0.02),
    ],
)
def test_an_operator_for_several_runs_and_answers_the_same(
    tiny, built, tmp_path, precision, options, operator, tolerance
) -> None:
    variant = name_variant("onnxruntime", precision)
    changed = {**OPTIONS["onnxruntime"], **options}
    other = build_variant(tiny, variant, tmp_path / "engine.json", options=changed)
    found = []
    for asked, path in ((False, built(variant)), (True, other)):
        engine = read_manifest(path, EngineManifest)
        assert engine["status"] == "ok", engine.get("reason")
        # which all optimizations, but not the basic ones, fuse in int8-dynamic too
        assert (operator in engine["executed"]) == (asked or precision == "int8-dynamic")
        found += answers_of(path, [stack(evaluation_rows(tiny)[:16])])
    np.testing.assert_allclose(found[1], found[0], atol=tolerance * np.abs(found[0]).max())
