"""Options of engines: operators for several of ONNX Runtime, and `reduce_range` of each.

That keeps one factor of each product of u8 and s8 within 7 bits.
"""

from pathlib import Path

import numpy as np
import pytest
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.inputs.arrays import stack
from tightrope.jobs.child import supervised
from tightrope.signature import of_texts
from tiny_model import (
    LIMITS,
    LONGEST,
    OPTIONS,
    TinyModel,
    answers_of,
    build_variant,
    evaluation_rows,
    name_variant,
)

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


def largest_in(folder: Path) -> int:
    """Run in a child: the largest weight in int8 of an ONNX file or an OpenVINO IR, read alike."""
    import openvino

    file = next(file for file in folder.iterdir() if file.suffix in (".onnx", ".xml"))
    operations = openvino.Core().read_model(file).get_ops()
    arrays = [one.data for one in operations if one.get_type_name() == "Constant"]
    return max(np.abs(one.astype(int)).max() for one in arrays if one.dtype == np.int8 and one.size)


def largest_of_inductor(model: TinyModel, reduced: bool) -> int:
    """Run in a child: the largest number to which an activation is rounded."""
    import torch
    from tightrope.engines.inductor import exported, quantized
    from tightrope.model.module import example_inputs, logits_module

    module = logits_module(model.checkpoint, torch.float32)
    graph = exported(module, of_texts(), LONGEST, example_inputs(of_texts(), 2)).module()
    nodes = quantized(graph, model.samples(model.minmax), reduced=reduced).graph.nodes
    # tensor, scale, zero point, smallest, largest, type
    return max(one.args[4] for one in nodes if ".quantize_per_tensor." in str(one.target))


@pytest.mark.parametrize(
    ("engine", "precision"), [("onnxruntime", "int8-dynamic"), ("openvino", "int8")]
)
def test_weights_are_within_7_bits_where_that_is_asked_for(tiny, tmp_path, engine, precision):
    found = []
    for reduced in (False, True):
        options = {**OPTIONS[engine], "reduce_range": reduced}
        target = tmp_path / str(reduced) / "engine.json"
        build_variant(tiny, name_variant(engine, precision), target, options=options)
        assert read_manifest(target, EngineManifest)["status"] == "ok"
        found.append(supervised(largest_in, target.parent, limits=LIMITS))
    assert 120 <= found[0] <= 128
    assert 60 <= found[1] <= 64


def test_activations_of_inductor_are_within_7_bits_where_that_is_asked_for(tiny: TinyModel) -> None:
    for reduced, largest in ((False, 255), (True, 127)):
        assert supervised(largest_of_inductor, tiny, reduced, limits=LIMITS) == largest
