"""Each runtime says which operators ran, from which their work and the bounds of a call follow."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from artifact_files import written
from tightrope.artifacts.failures import write_failure
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.timing_batches import timing_batches
from tightrope.jobs.child import supervised
from tightrope.measure.profile import measure_profile, operator_times
from tightrope.records.profile import ProfileRecord
from tightrope.runtimes.operator_times import OperatorTime
from tightrope.variants import Variant
from tiny_model import EXECUTION, LIMITS, LONGEST, TinyModel, artifacts_of, name_variant

THREADS = 1
CALLS = 5
SIDE, ELEMENTS = 64, 2**12


class Product(torch.nn.Module):
    """A product of matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(SIDE, SIDE)

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x)


class Elementwise(torch.nn.Module):
    """Sums for each element of a tensor."""

    def forward(self, x: torch.Tensor) -> Any:
        x = x + 1.0
        for _ in range(4):
            x = x.abs_().add_(1.0)
        return x


MODELS: dict[str, tuple[Callable[[], torch.nn.Module], tuple[int, ...]]] = {
    "product": (Product, (SIDE, SIDE)),
    "elements": (Elementwise, (ELEMENTS,)),
}


def exported(name: str, target: Path) -> None:
    make, shape = MODELS[name]
    torch.onnx.export(make(), (torch.ones(shape),), target, input_names=["x"], verbose=False)


def in_pytorch(name: str, folder: Path) -> list[OperatorTime]:
    from tightrope.runtimes.torch.operator_times import operator_times

    torch.set_num_threads(THREADS)
    make, shape = MODELS[name]
    module, x = make(), torch.ones(shape)
    with torch.inference_mode():
        return operator_times(lambda: module(x), CALLS)


def in_onnxruntime(name: str, folder: Path) -> list[OperatorTime]:
    from tightrope.runtimes.onnxruntime.operator_times import operator_times

    exported(name, folder / "a.onnx")
    options = {"optimization": "all", "arena": True, "spinning": True}
    inputs = {"x": np.ones(MODELS[name][1], np.float32)}
    (found,) = operator_times(folder / "a.onnx", THREADS, options, [(inputs, CALLS)])
    return found


def in_openvino(name: str, folder: Path) -> list[OperatorTime]:
    import openvino
    from tightrope.runtimes.openvino import COUNTERS, operator_times, settings_of

    exported(name, folder / "a.onnx")
    core, settings = openvino.Core(), settings_of("fp32", THREADS)
    model = core.read_model(folder / "a.onnx")
    inputs = {"x": np.ones(MODELS[name][1], np.float32)}
    counted = core.compile_model(model, "CPU", {**settings, **COUNTERS})
    return operator_times(counted, inputs, CALLS)


def in_tvm(name: str, folder: Path) -> list[OperatorTime]:
    import tvm
    from tightrope.engines.tvm import host_target, set_threads
    from tightrope.runtimes.tvm.operator_times import operator_times
    from tightrope.runtimes.tvm.programs import lowered, scheduled, transposed
    from tvm.relax.frontend.torch import from_exported_program

    set_threads(THREADS)
    make, shape = MODELS[name]
    exported_program = torch.export.export(transposed(make()), (torch.ones(shape),))
    module = from_exported_program(exported_program, unwrap_unit_return_tuple=True)
    with host_target(THREADS) as host:
        library = tvm.compile(scheduled(lowered(module)), host)
    library.export_library(folder / "a.so")
    return operator_times(folder / "a.so", [np.ones(shape, np.float32)], CALLS)


RUNTIMES = {
    "pytorch": in_pytorch,
    "onnxruntime": in_onnxruntime,
    "openvino": in_openvino,
    "tvm": in_tvm,
}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_work_of_a_call_is_that_of_its_shapes_whatever_the_runtime(
    runtime: str, tmp_path: Path
) -> None:
    found = {
        name: supervised(partial(RUNTIMES[runtime], name, tmp_path), limits=LIMITS)
        for name in MODELS
    }
    products = [one for one in found["product"] if one.group == "products"]
    assert sum(one.operations for one in products) == 2 * SIDE**3
    # of constants OpenVINO says nothing
    assert sum(one.bytes for one in products) >= 2 * 4 * SIDE**2
    assert "products" not in {one.group for one in found["elements"]}
    # read and written once, if all is fused
    assert sum(one.bytes for one in found["elements"]) >= 2 * 4 * ELEMENTS
    assert sum(one.operations for one in found["elements"]) >= ELEMENTS
    assert all(one.seconds >= 0 for one in found["elements"]) and products[0].seconds > 0


def operators_of(engine: Path, *batches: Arrays) -> list[list[OperatorTime]]:
    """In a child, which alone loads the engine."""
    run, _ = load_engine(engine, threads=THREADS)
    for batch in batches:
        run(batch)
    calls = [(batch, CALLS) for batch in batches]
    return operator_times(engine, run, calls, threads=THREADS)


@pytest.fixture
def at_batches(tiny: TinyModel, built: Callable[..., Path]) -> Any:
    """From a variant and batches of 32 tokens to the operators of a call of each."""

    def operators(variant: Variant, *batches: int) -> list[list[OperatorTime]]:
        shapes = [{"batch": batch, "sequence": 32} for batch in batches]
        files = tiny.checkpoint, tiny.split("timing")
        inputs = timing_batches(*files, shapes, max_sequence=LONGEST)
        return supervised(partial(operators_of, built(variant), *inputs), limits=LIMITS)

    return operators


@pytest.mark.parametrize("engine", ["onnxruntime", "pytorch"])
def test_an_engine_that_is_loaded_once_has_the_operators_of_each_shape(
    at_batches: Any, engine: str
) -> None:
    small, large = (
        sum(one.operations for one in found if one.group == "products")
        for found in at_batches(name_variant(engine, "fp32"), 2, 4)
    )
    layer = 2 * 2 * 32 * (4 * 64 * 64 + 2 * 64 * 128)
    # of the second layer the ONNX file computes the first token only
    assert small > layer
    # but for an operator on one number, which is the same in both
    assert large == pytest.approx(2 * small)


@pytest.mark.parametrize("failed", ["requests", "peaks"])
def test_what_profiles_share_and_could_not_be_measured_is_the_reason_of_each(
    tiny: TinyModel, built: Callable[..., Path], tmp_path: Path, failed: str
) -> None:
    variant = name_variant("onnxruntime", "fp32")
    speeds = {"operations_per_s": {"fp32": 1e11}, "copy_bytes_per_s": 1e10}
    peaks = {"device": "cpu", "threads": 1, **speeds, "smallest_operator_s": 1e-6}
    written(tmp_path / "peaks.json", {"peaks": peaks})
    write_failure(tmp_path / f"{failed}.json", reason="killed", transient=False)
    measure_profile(
        artifacts_of(tiny, built(variant), split="timing"),
        *(tmp_path / f"{name}.json" for name in ("requests", "peaks", "record")),
        model="tiny",
        variant=str(variant),
        max_sequence=LONGEST,
        execution=EXECUTION,
    )
    record = ProfileRecord.read(tmp_path / "record.json")
    assert (record.status, record.reason, record.shapes) == ("failed", "killed", [])


def test_the_kernels_of_tvm_do_the_work_of_the_bucket(at_batches: Any) -> None:
    """Of BERT with two layers, 64 channels, 128 in between and three labels."""
    (kernels,) = at_batches(name_variant("tvm", "fp32"), 2)
    done: dict[str, float] = {}
    for one in kernels:
        done[one.group] = done.get(one.group, 0.0) + one.operations
    # the nearest bucket, 16 x 64
    texts, tokens = 16, 16 * 64
    layer = 2 * tokens * (4 * 64 * 64 + 2 * 64 * 128) + 4 * tokens * 64 * 64
    assert done["products"] == 2 * layer + 2 * texts * (64 * 64 + 64 * 3)
    assert {"softmax", "normalization", "embeddings", "moves"} <= set(done)
    assert not [one for one in kernels if one.name.startswith("vm.")]


def test_a_package_names_its_attention_and_each_product_once(at_batches: Any) -> None:
    """Attention is no primitive of oneDNN, and was taken for overhead."""
    (kernels,) = at_batches(name_variant("inductor", "int8"), 2)
    attention = [one for one in kernels if one.group == "attention"]
    assert [one.kind for one in attention if "scaled_dot_product" in one.kind]
    assert "dispatch" in {one.group for one in kernels}
    done = sum(one.operations for one in kernels if one.group == "products")
    layer = 2 * 2 * 32 * (4 * 64 * 64 + 2 * 64 * 128)
    assert done == 2 * layer + 2 * 2 * (64 * 64 + 64 * 3)
