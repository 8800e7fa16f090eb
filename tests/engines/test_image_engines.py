"""Every engine of the cpu on images: logits of PyTorch fp32, batches padded, sizes refused."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from splits import split_of
from tightrope.engine_table import ENGINES
from tightrope.engines.load import load_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.jobs.child import supervised
from tightrope.model.module import load_module
from tightrope.variants import Variant, parse
from tiny_images import SIDE
from tiny_model import LIMITS, SAMPLES, TinyModel, skip_where_emulated

# The norm of the difference of a batch's logits over the norm of its logits.
TOLERANCES = {
    "cpu-pytorch-fp32": 1e-5,
    "cpu-pytorch-bf16": 0.03,
    "cpu-pytorch-int8-dynamic": 0.05,
    "cpu-torchscript-fp32": 1e-5,
    "cpu-torchscript-bf16": 0.03,
    "cpu-compile-fp32": 1e-4,
    "cpu-onnxruntime-fp32": 1e-4,
    f"cpu-onnxruntime-int8-minmax-{SAMPLES}": 0.1,
    "cpu-onnxruntime-int8-dynamic": 0.1,
    "cpu-openvino-fp32": 1e-4,
    "cpu-openvino-bf16": 0.03,
    f"cpu-openvino-int8-nncf-{SAMPLES}": 0.1,
}
Build = Callable[[Variant], Path]
pytestmark = pytest.mark.usefixtures("compiled_once")


def answer(path: Path, batches: list[Arrays]) -> list[np.ndarray]:
    """Run in a child, which alone starts the runtime's threads."""
    run, _ = load_engine(path, threads=1)
    return [run(batch) for batch in batches]


def reference(folder: Path, batches: list[Arrays]) -> list[np.ndarray]:
    import torch

    torch.set_num_threads(1)
    module = load_module(folder, torch.float32)
    with torch.inference_mode():
        return [module(torch.from_numpy(one["pixel_values"])).logits.numpy() for one in batches]


@pytest.fixture(scope="module")
def batches(tiny_images: TinyModel) -> list[Arrays]:
    """One image, three, sixteen, and one again."""
    encode = load_encoder(tiny_images.checkpoint, max_sequence=1)
    rows = encode(read_split(split_of(tiny_images.data, "evaluation")))
    return [stack(rows[:1]), stack(rows[1:4]), stack(rows[:16]), stack(rows[:1])]


@pytest.fixture(scope="module")
def expected(tiny_images: TinyModel, batches: list[Arrays]) -> list[np.ndarray]:
    return supervised(reference, tiny_images.checkpoint.parent, batches, limits=LIMITS)


def test_every_engine_of_the_cpu_is_tried_on_images() -> None:
    """But AOTInductor, which compiles as torch.compile does, for its minute; TVM has none."""
    assert {name.split("-")[1] for name in TOLERANCES} | {"inductor", "tvm"} == {
        name for name, engine in ENGINES.items() if "cpu" in engine.precisions
    }


def users_of_int8(folder: Path) -> set[str]:
    """Run in a child: kinds of the operators whose activations are quantized."""
    import openvino

    found = set()
    for operation in openvino.Core().read_model(folder / "model.xml").get_ops():
        if operation.get_type_name() == "FakeQuantize":
            found |= {
                user.get_node().get_type_name() for user in operation.output(0).get_target_inputs()
            }
    return found


def test_openvino_computes_nothing_but_products_in_int8(built_images: Build) -> None:
    folder = built_images(parse(f"cpu-openvino-int8-nncf-{SAMPLES}")).parent
    assert supervised(users_of_int8, folder, limits=LIMITS) == {"Convolution", "MatMul"}


@pytest.mark.parametrize("name", TOLERANCES)
def test_logits_of_images_are_those_of_pytorch_fp32(
    name: str, built_images: Build, batches: list[Arrays], expected: list[np.ndarray]
) -> None:
    engine = json.loads(built_images(parse(name)).read_text())
    skip_where_emulated(parse(name), engine)
    assert engine["status"] == "ok", engine["reason"]
    assert engine["inputs"] == [["pixel_values", "float32", ["batch", 3, SIDE, SIDE]]]
    found = supervised(answer, built_images(parse(name)), batches, limits=LIMITS)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        assert np.linalg.norm(ours - theirs) <= TOLERANCES[name] * np.linalg.norm(theirs)
    np.testing.assert_array_equal(found[0], found[3])


def test_convolutions_of_a_quantized_model_run_in_int8(built_images: Build) -> None:
    engine = json.loads(built_images(parse(f"cpu-onnxruntime-int8-minmax-{SAMPLES}")).read_text())
    assert engine["executed"]["QLinearConv"] == {"int8": 4}


@pytest.mark.parametrize("name", ["cpu-onnxruntime-fp32", "cpu-openvino-fp32"])
def test_images_of_another_size_are_refused_by_name(name: str, built_images: Build) -> None:
    batch = {"pixel_values": np.zeros((1, 3, SIDE, SIDE + 1), np.float32)}
    with pytest.raises(WorkFailed, match=rf"3x{SIDE}x{SIDE + 1} pixels.* 3x{SIDE}x{SIDE} \(ch"):
        supervised(answer, built_images(parse(name)), [batch], limits=LIMITS)
