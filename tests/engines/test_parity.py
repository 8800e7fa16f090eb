"""Every engine of the cpu against PyTorch fp32, on real texts of several shapes and on images."""

import json
import platform
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.engine_table import ENGINES
from tightrope.engines.load import load_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.jobs.child import supervised
from tightrope.signature import IMAGE, TEXT
from tightrope.variants import Variant
from tiny_images import SIDE
from tiny_model import LIMITS, LONGEST, answers_of, difference, name_variant, skip_where_emulated

Build = Callable[[Variant], Path]
Ask = Callable[[str, Variant], Any]
EngineOf = Callable[[str, Variant], Path]
ONNXRUNTIME = name_variant("onnxruntime", "fp32")
# The norm of the difference of a batch's logits over the norm of its logits.
TOLERANCES = {
    (TEXT, "pytorch", "fp32"): 1e-5,
    (TEXT, "pytorch", "bf16"): 0.01,
    (TEXT, "pytorch", "int8-dynamic"): 0.05,
    (TEXT, "torchscript", "fp32"): 1e-5,
    (TEXT, "torchscript", "bf16"): 0.01,
    (TEXT, "inductor", "int8"): 0.05,
    (TEXT, "onnxruntime", "fp32"): 1e-4,
    (TEXT, "onnxruntime", "fp16"): 0.01,
    (TEXT, "onnxruntime", "int8"): 0.05,
    (TEXT, "onnxruntime", "int8-auto"): 0.05,
    (TEXT, "onnxruntime", "int8-dynamic"): 0.05,
    (TEXT, "openvino", "fp32"): 1e-4,
    (TEXT, "openvino", "bf16"): 0.01,
    (TEXT, "openvino", "int8"): 0.05,
    # with AMX one text of eighty is sensitive: 0.06 of its batch
    (TEXT, "openvino", "int8-bf16"): 0.1,
    (TEXT, "tvm", "fp32"): 1e-4,
    (IMAGE, "pytorch", "bf16"): 0.03,
    (IMAGE, "torchscript", "fp32"): 1e-5,
    (IMAGE, "compile", "fp32"): 1e-4,
    (IMAGE, "onnxruntime", "fp32"): 1e-4,
    (IMAGE, "onnxruntime", "int8"): 0.1,
    (IMAGE, "onnxruntime", "int8-dynamic"): 0.1,
    (IMAGE, "openvino", "fp32"): 1e-4,
    (IMAGE, "openvino", "bf16"): 0.03,
    (IMAGE, "openvino", "int8"): 0.1,
}
# The same in a batch that is like none of the calibration samples, below fp32: unrelated logits
# give 1.4.
STRANGE = 0.6
# ONNX Runtime's CPU provider multiplies matrices in fp16 on ARM only
FP16_MISSING = platform.machine() == "x86_64"
# each would compile for half a minute once more: Inductor compiles images in fp32, texts in int8
COMPILED_OTHERWISE = {(one, of) for one in ("compile", "inductor") for of in ("fp32", "bf16")}
CASES = [
    pytest.param(task, name_variant(engine, precision), id=f"{task[:5]}-{engine}-{precision}")
    for task, engine, precision in TOLERANCES
    if not (precision == "fp16" and FP16_MISSING)
]
every_case = pytest.mark.parametrize(("task", "variant"), CASES)
TEXT_VARIANTS = [case.values[1] for case in CASES if case.values[0] == TEXT]


@pytest.fixture
def answered(task: str, variant: Variant, answers: Ask, engine_of: EngineOf) -> Any:
    """The answers of the case; skips where this CPU lacks the precision."""
    engine = json.loads(engine_of(task, variant).read_text())
    skip_where_emulated(variant, engine)
    assert engine["status"] == "ok", engine["reason"]
    return answers(task, variant)


def test_the_table_has_every_engine_and_precision_of_the_cpu() -> None:
    known = {(engine, precision) for task, engine, precision in TOLERANCES if task == TEXT}
    assert known | COMPILED_OTHERWISE == {
        (engine, precision)
        for engine, facts in ENGINES.items()
        for precision in facts.precisions.get("cpu", ())
    }


@pytest.mark.skipif(not FP16_MISSING, reason="this CPU's provider may have fp16: judged as others")
def test_a_session_that_runs_fp16_in_fp32_is_failed_for_that(built: Build) -> None:
    engine = json.loads(built(name_variant("onnxruntime", "fp16")).read_text())
    assert engine["status"] == "failed"
    assert engine["reason"] == "ran in fp32: no matrix product ran in fp16"


@every_case
def test_logits_are_those_of_pytorch_fp32(task, variant, answered, expected) -> None:
    tolerance, theirs = TOLERANCES[task, variant.engine, variant.precision], expected[task]
    allowed = [tolerance] * len(theirs)
    if task == TEXT and variant.precision != "fp32":
        allowed[-2:] = [STRANGE] * 2
    found = [difference(*pair) for pair in zip(answered.first, theirs, strict=True)]
    assert all(one <= most for one, most in zip(found, allowed, strict=True)), found
    if task == TEXT:
        # all texts, each once
        ours, right = (np.concatenate(one[8:-2]).argmax(1) for one in (answered.first, theirs))
        assert len(ours) == 80 and set(right) == {0, 1, 2}
        np.testing.assert_array_equal(ours, right)
        assert variant.precision == "fp32" or max(found) > 2e-4, "it is no lower precision"


@every_case
def test_a_call_depends_on_nothing_else_and_leaves_all_else_alone(task, variant, answered, batches):
    """Also in a copy of the folder elsewhere that lives in the same process."""
    for logits, batch in zip(answered.first, batches[task], strict=True):
        rows = len(next(iter(batch.values())))
        assert (logits.dtype, logits.shape[0]) == (np.float32, rows)
        assert np.isfinite(logits).all()
    assert answered.untouched and answered.held
    for one, other in zip(answered.first, answered.again, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, others in zip(answered.first, answered.of_two, strict=False):
        for other in others:
            np.testing.assert_array_equal(one, other)


@every_case
def test_the_manifest_says_what_was_built(task, variant, answered, engine_of, tiny, tiny_images):
    path, model = engine_of(task, variant), {TEXT: tiny, IMAGE: tiny_images}[task]
    engine = read_manifest(path, EngineManifest)
    assert (engine["status"], engine["variant"]) == ("ok", str(variant))
    assert engine["precision"] == variant.precision
    counts, wanted = engine["executed"], variant.precision.partition("-")[0]
    if task == TEXT:
        assert sum(count.get(wanted, 0) for count in counts.values()) >= 14
    else:
        assert engine["inputs"] == [["pixel_values", "float32", ["batch", 3, SIDE, SIDE]]]
    assert all(isinstance(number, int) for count in counts.values() for number in count.values())
    assert engine["format"]
    int8 = path.parent.with_name(f"{path.parent.name}-quantized") / path.name  # `build_variant`
    candidates = {path.name: path for path in (*model, model.split("calibration"), int8)}
    own = variant.calibration and not (variant.scheme or variant.quantized_as)
    assert len(engine["sources"]) == (4 if own else 1)
    assert engine["sources"] == {name: sha256(candidates[name]) for name in engine["sources"]}
    assert set(engine["libraries"]) == set(ENGINES[variant.engine].libraries)
    assert all(engine["libraries"].values())
    assert engine["build_s"] > 0
    assert 3e7 < engine["build_peak_rss_bytes"] < 8e9
    assert all(file["size_bytes"] > 0 for file in engine["files"].values())
    assert engine["files"]


def answer_in_turn(paths: list[Path], batches: list[Arrays]) -> list[list[np.ndarray]]:
    """Run in a child: all engines loaded, then asked one after the other for each batch."""
    runs = [load_engine(path, threads=1)[0] for path in paths]
    return [[run(batch) for run in runs] for batch in batches]


def test_all_engines_live_in_one_process_at_the_same_time(answers, built, batches) -> None:
    variants = [one for one in TEXT_VARIANTS if one.precision != "bf16"]
    variants = [one for one in variants if json.loads(built(one).read_text())["status"] == "ok"]
    paths = [built(variant) for variant in variants]
    found = supervised(answer_in_turn, paths, batches[TEXT][:8], limits=LIMITS)
    for index, in_turn in enumerate(found):
        for variant, together in zip(variants, in_turn, strict=True):
            alone = answers(TEXT, variant).first[index]
            # another number of threads may add up in another order
            np.testing.assert_allclose(together, alone, atol=2e-2 * np.abs(alone).max())


WIDE = rf"3x{SIDE}x{SIDE + 1} pixels.* 3x{SIDE}x{SIDE} \(ch"


@pytest.mark.parametrize(
    ("task", "name", "shape", "said"),
    [
        (TEXT, "input_ids", (1, LONGEST + 1), rf"{LONGEST + 1}.* 1 to {LONGEST}"),
        (IMAGE, "pixel_values", (1, 3, SIDE, SIDE + 1), WIDE),
    ],
)
def test_a_request_beyond_the_range_is_an_error_that_names_it(task, name, shape, said, engine_of):
    batch, path = {name: np.zeros(shape, np.int64)}, engine_of(task, ONNXRUNTIME)
    with pytest.raises(WorkFailed, match=said) as caught:
        answers_of(path, [batch])
    assert not caught.value.transient


def of_any_size(path: Path, batches: list[Arrays], few: int) -> list[np.ndarray]:
    """Run in a child: torch.compile's programs, of which there are two for the first `few` batches.

    Their graphs are run by PyTorch: to compile them takes half a minute. The files are the same.
    """
    import torch
    from tightrope.engines import compile

    torch.compile = partial(torch.compile, backend="eager")
    settings: dict[str, Any] = {"precision": "fp32", "device": "cpu", "threads": 1, "options": {}}
    run = compile.load(path.parent, **settings)
    torch._dynamo.config.error_on_recompile = True
    found = [run(batch) for batch in batches[:few]]
    torch._dynamo.config.error_on_recompile = False
    return found + [run(batch) for batch in batches[few:]]


# PyTorch itself takes other convolutions from batch 16 on
@pytest.mark.parametrize(("task", "few"), [(TEXT, 8), (IMAGE, 2)])
def test_torch_compile_makes_two_programs_one_and_several(task, few, engine_of, batches, expected):
    path = engine_of(task, name_variant("pytorch", "fp32"))
    found = supervised(of_any_size, path, batches[task], few, limits=LIMITS)
    for ours, theirs in zip(found, expected[task], strict=True):
        assert difference(ours, theirs) < 1e-5


def users_of_int8(folder: Path) -> set[str]:
    """Run in a child: kinds of the operators whose activations are quantized."""
    import openvino

    operations = openvino.Core().read_model(folder / "model.xml").get_ops()
    rounded = [one for one in operations if one.get_type_name() == "FakeQuantize"]
    users = [user for one in rounded for user in one.output(0).get_target_inputs()]
    return {user.get_node().get_type_name() for user in users}


def test_convolutions_and_products_of_images_run_in_int8(built_images: Build) -> None:
    folder = built_images(name_variant("openvino", "int8")).parent
    assert supervised(users_of_int8, folder, limits=LIMITS) == {"Convolution", "MatMul"}
    engine = json.loads(built_images(name_variant("onnxruntime", "int8")).read_text())
    assert engine["executed"]["QLinearConv"] == {"int8": 4}
