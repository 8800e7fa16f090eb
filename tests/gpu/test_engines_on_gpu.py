"""Every engine and precision on an NVIDIA GPU against PyTorch fp32 on the CPU."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.engine_table import ENGINES
from tightrope.engines.load import load_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays, stack
from tightrope.jobs.child import Limits, supervised
from tightrope.machine.lacks import missing_packages
from tightrope.variants import CALIBRATED, GIVEN, Variant
from tiny_model import (
    LONGEST,
    OPTIONS,
    SAMPLES,
    TinyModel,
    answers_of,
    build_variant,
    difference,
    evaluation_rows,
    make_onnx_files,
    make_text_checkpoint,
    model_files,
)

pytestmark = pytest.mark.gpu

LIMITS = Limits(memory_bytes=32e9, seconds=600)
# The norm of the difference of a batch's logits over the norm of its logits.
TOLERANCES = {
    **{"fp32": 1e-4, "tf32": 5e-3, "fp16": 5e-3, "bf16": 0.02},
    **{"int8": 0.05, "int8-fp16": 0.05, "int8-dynamic": 0.05, "fp8": 0.1},
    "given": 0.05,
}
# kernels are tuned for one precision: it takes minutes for each
TUNED = "fp16"
ON_GPU = {
    "attention": "auto",
    "autotune": True,
    "graphs": True,
    "buckets": {"batch": [1, 16], "sequence": [32, LONGEST]},
    "profiles": [[[1, 1], [1, 32], [16, LONGEST]], [[1, 1], [16, LONGEST], [16, LONGEST]]],
    "optimization_level": 3,
    "version_compatible": False,
    "hardware_compatibility": "none",
}
Build = Callable[..., Path]


def named(engine: str, precision: str) -> Variant:
    methods = ENGINES[engine].methods
    calibrated = precision in CALIBRATED and methods
    return Variant("cuda", engine, precision, f"{methods[0]}-{SAMPLES}" if calibrated else None)


EVERY = [
    pytest.param(named(engine, precision), id=f"{engine}-{precision}")
    for engine, facts in ENGINES.items()
    for precision in (*facts.precisions.get("cuda", ()), *[GIVEN] * ("cuda" in facts.given))
]


@pytest.fixture(scope="session")
def tiny(made_once: Callable[..., Path]) -> TinyModel:
    """The tiny model without its ONNX files, which not every machine with a GPU can make."""

    def make(folder: Path) -> None:
        supervised(make_text_checkpoint, folder, model_files(folder), limits=LIMITS)

    return model_files(made_once("tiny-checkpoint", make))


@pytest.fixture(scope="session")
def with_onnx(tiny: TinyModel) -> Callable[[], None]:
    """Makes the ONNX files at the first call; skips a test where onnxslim is not installed."""

    def make() -> None:
        pytest.importorskip("onnxslim")
        if not tiny.e4m3.exists():
            supervised(make_onnx_files, tiny, limits=LIMITS)

    return make


@pytest.fixture(scope="module")
def batches(tiny: TinyModel) -> list[Arrays]:
    rows = sorted(evaluation_rows(tiny), key=lambda row: len(row["input_ids"]))
    few = [rows[5], rows[40], rows[60]]
    return [stack(rows[:1]), stack(rows[-1:]), stack(few), stack(rows[-16:]), stack(rows[:1])]


@pytest.fixture(scope="module")
def build(
    tiny: TinyModel, with_onnx: Callable[[], None], tmp_path_factory: pytest.TempPathFactory
) -> Build:
    """From a variant and changed options to its engine.json; skips what is not installed."""
    folder = tmp_path_factory.mktemp("gpu")
    made: dict[str, Path] = {}

    def builder(variant: Variant, **changed: Any) -> Path:
        if missing := missing_packages(variant.engine):
            pytest.skip(missing)
        if ENGINES[variant.engine].source != "checkpoint":
            with_onnx()
        key = f"{variant}{sorted(changed.items())}"
        if key not in made:
            # a model's folder each, as the engines keep timings in work/ beside theirs
            target = folder / str(len(made)) / "engines" / str(variant) / "engine.json"
            options = OPTIONS.get(variant.engine, {}) | ON_GPU | changed
            options["autotune"] = options["autotune"] and variant.precision == TUNED
            made[key] = build_variant(tiny, variant, target, options=options, limits=LIMITS)
        return made[key]

    return builder


def answers(path: Path, batches: list[Arrays]) -> Any:
    run, _ = load_engine(path, threads=2)
    first = [run(batch) for batch in batches]
    copies = [logits.copy() for logits in first]
    again = [run(batch) for batch in batches]
    return first, copies, again, run.device_seconds(batches[0], 10)


@pytest.fixture(scope="module")
def expected(tiny: TinyModel, batches: list[Arrays]) -> list[np.ndarray]:
    path = tiny.checkpoint.parent.parent / "reference" / "engine.json"
    build_variant(tiny, Variant("cpu", "pytorch", "fp32"), path)
    return answers_of(path, batches, threads=2)


@pytest.mark.parametrize("variant", EVERY)
def test_logits_on_the_gpu_are_those_of_pytorch_fp32(variant, build, batches, expected) -> None:
    path = build(variant)
    engine = json.loads(path.read_text())
    assert engine["status"] == "ok", engine["reason"]
    wanted = variant.precision.partition("-")[0]
    assert sum(counts.get(wanted, 0) for counts in engine["executed"].values())
    first, copies, again, seconds = supervised(answers, path, batches, limits=LIMITS)
    for ours, copy, repeated, theirs in zip(first, copies, again, expected, strict=True):
        assert difference(ours, theirs) <= TOLERANCES[variant.precision], theirs.shape
        np.testing.assert_array_equal(ours, copy)
        np.testing.assert_array_equal(ours, repeated)
    assert len(seconds) == 10
    assert all(0 < one < 1 for one in seconds)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_the_tensorrt_provider_gives_these_logits_too(precision, build, batches, expected) -> None:
    path = build(Variant("cuda", "onnxruntime", precision), provider="tensorrt")
    engine = read_manifest(path, EngineManifest)
    assert engine["status"] == "ok", engine["reason"]
    assert "TensorrtExecutionProvider" in engine["provider"]
    for ours, theirs in zip(
        supervised(answers, path, batches, limits=LIMITS)[0], expected, strict=True
    ):
        assert difference(ours, theirs) <= TOLERANCES[precision], theirs.shape


GRAPHED = [one for one in EVERY if "graphs" in ENGINES[one.values[0].engine].cuda]


@pytest.mark.parametrize("variant", [one for one in GRAPHED if one.values[0].precision == "fp16"])
def test_a_cuda_graph_gives_what_single_launches_give(variant, build, batches) -> None:
    with_graph = supervised(answers, build(variant), batches, limits=LIMITS)[0]
    without = supervised(answers, build(variant, graphs=False), batches, limits=LIMITS)[0]
    for one, other in zip(with_graph, without, strict=True):
        assert difference(one, other) < 1e-2


def beyond(path: Path) -> None:
    ids = np.ones((17, LONGEST), np.int64)
    load_engine(path, threads=2)[0]({"input_ids": ids, "attention_mask": ids})


@pytest.mark.parametrize("engine", ["compile", "tensorrt"])
def test_a_shape_beyond_what_was_built_for_is_an_error_that_names_the_range(engine, build) -> None:
    with pytest.raises(WorkFailed, match=rf"17x{LONGEST}.* to 16"):
        supervised(beyond, build(Variant("cuda", engine, "fp16")), limits=LIMITS)


@pytest.mark.parametrize("kind", ["efficient", "math"])
def test_the_attention_that_was_asked_for_is_recorded(kind: str, build: Build) -> None:
    path = build(Variant("cuda", "pytorch", "fp16"), attention=kind)
    executed = read_manifest(path, EngineManifest)["executed"]
    assert any("efficient" in name for name in executed) is (kind == "efficient")


def test_fp32_is_not_rounded_to_tf32(build: Build) -> None:
    executed = {
        precision: read_manifest(build(Variant("cuda", "pytorch", precision)), EngineManifest)[
            "executed"
        ]
        for precision in ("fp32", "tf32")
    }
    kinds = {
        precision: {kind for counts in found.values() for kind in counts}
        for precision, found in executed.items()
    }
    assert kinds == {"fp32": {"fp32"}, "tf32": {"tf32"}}


def fill_the_gpu() -> None:
    import torch

    torch.empty(1 << 45, dtype=torch.uint8, device="cuda")


def test_a_full_gpu_is_a_failure_that_may_pass(build: Build) -> None:
    build(Variant("cuda", "pytorch", "fp16"))
    with pytest.raises(WorkFailed, match="out of memory") as caught:
        supervised(fill_the_gpu, limits=LIMITS)
    assert caught.value.transient
