"""What config.pbtxt says of an engine is what its files hold, loaded as Triton's backends do."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tightrope.bundle.triton import triton_files
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays
from tightrope.jobs.child import supervised
from tightrope.signature import IMAGE, TEXT
from tightrope.variants import Variant
from tiny_model import LIMITS
from triton_engines import MODEL, TEMPLATES, result, row
from triton_schema import parameters_of, parsed

LABELS = ["bad", "good", "odd"]
ROWS = 3


def config_of(path: Path, labels: list[str]) -> Any:
    """The configuration of an engine, with latencies that are not its own."""
    engine = json.loads(path.read_text())
    latency = [row(batch, batch / 100, {"sequence": 16}) for batch in (1, 16)]
    measured = result(engine["variant"], latency=latency)
    files = triton_files(MODEL, engine, labels, measured, [], [], templates=TEMPLATES)
    return parsed(files[f"{MODEL}/config.pbtxt"])


def request_of(config: Any, rows: int, tokens: int) -> Arrays:
    """A request of that many rows, each of so many tokens, with the inputs of the configuration."""
    draw, batch = np.random.default_rng(0), config.max_batch_size == 0
    found = {}
    for one in config.input:
        shape = [rows, *(tokens if size == -1 else size for size in one.dims[batch:])]
        images = one.name == "pixel_values"
        found[one.name] = (
            draw.normal(size=shape).astype(np.float32) if images else np.ones(shape, np.int64)
        )
    return found


def expected(path: Path, inputs: Arrays) -> Any:
    """The logits of the engine as it is measured."""
    run, _ = load_engine(path, threads=1)
    return run(inputs)


def of_onnxruntime(path: Path, config: Any) -> None:
    import onnxruntime

    file = str(path.parent / "model.onnx")
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_inputs()] == [one.name for one in config.input]
    (output,) = session.get_outputs()
    assert (output.name, output.type) == (config.output[0].name, "tensor(float)")
    assert output.shape[1:] == list(config.output[0].dims)


def of_openvino(path: Path, config: Any) -> None:
    """Properties are set and requests are made as openvino.cc does, without a maximal batch."""
    import openvino

    core = openvino.Core()
    names = ("NUM_STREAMS", "INFERENCE_NUM_THREADS")
    for name in names:
        core.set_property("CPU", {name: int(parameters_of(config)[name])})
    if parameters_of(config).get("HINT_BF16"):
        core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "bf16"})
    else:  # what the backend cannot ask for, see README.md of the bundle
        core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    model = core.read_model(path.parent / "model.xml")
    ports = [*model.inputs, *model.outputs]
    for port, one in zip(ports, [*config.input, *config.output], strict=True):
        assert port.any_name == one.name
        dims = [-1 if size.is_dynamic else size.get_length() for size in port.partial_shape]
        assert dims == list(one.dims)
    call = core.compile_model(model, "CPU").create_infer_request()
    for rows, tokens in ((1, 16), (ROWS, 40)):
        inputs = request_of(config, rows, tokens)
        for name, array in inputs.items():
            call.set_tensor(name, openvino.Tensor(array))
        call.infer()
        logits = call.get_tensor(config.output[0].name).data
        np.testing.assert_allclose(logits, expected(path, inputs), atol=1e-2)


def of_torchscript(path: Path, config: Any) -> None:
    """The inputs are those of `forward`, which the backend calls by position."""
    import torch

    program = torch.jit.load(str(path.parent / "model.pt"))
    names = [one.name for one in program.forward.schema.arguments[1:]]
    assert names == [one.name for one in config.input]
    inputs = request_of(config, ROWS, 16)
    with torch.inference_mode():
        logits = program(*(torch.from_numpy(inputs[name]) for name in names))
    assert logits.dtype == torch.float32
    assert list(logits.shape[1:]) == list(config.output[0].dims)
    np.testing.assert_allclose(logits.numpy(), expected(path, inputs), atol=1e-4)


CHECKS = {"onnxruntime": of_onnxruntime, "openvino": of_openvino, "torchscript": of_torchscript}


@pytest.mark.parametrize("task", [TEXT, IMAGE])
@pytest.mark.parametrize("engine", CHECKS)
def test_the_file_of_an_engine_has_the_tensors_of_its_configuration(engine_of, task, engine):
    path = engine_of(task, Variant("cpu", engine, "fp32"))
    labels = LABELS if task == TEXT else [str(digit) for digit in range(10)]
    supervised(check, engine, path, labels, limits=LIMITS)


def check(engine: str, path: Path, labels: list[str]) -> None:
    CHECKS[engine](path, config_of(path, labels))
