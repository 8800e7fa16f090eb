"""Modules are found in another program by their weights."""

from pathlib import Path

import numpy as np
import pytest
import torch
from onnx import helper, numpy_helper
from safetensors.numpy import save_file
from tightrope.artifacts.manifest import write_manifest
from tightrope.int8.learnt_ranges import LearntRanges, with_learnt_ranges
from tightrope.onnx.file import load_onnx, save_onnx
from tightrope.onnx.weights import weighted_nodes

RANGES = {"first": [-1.0, 2.0], "second": [0.0, 3.0], "head": [-4.0, 1.0]}


def checkpoint_of(folder: Path, weights: dict[str, np.ndarray]) -> Path:
    """A checkpoint with these weights, of which those in RANGES have learnt a range."""
    folder.mkdir()
    stored = {f"{name}.weight": np.ascontiguousarray(one) for name, one in weights.items()}
    save_file(stored, folder / "model.safetensors")
    facts = {"task": "image-classification", "source": "model:m", "labels": ["a", "b"]}
    none = dict.fromkeys(("architecture", "max_sequence", "recipe", "training"))
    qat = {"scheme": "u8s8", "ranges": {name: RANGES[name] for name in weights}}
    write_manifest(folder / "checkpoint.json", **facts, **none, parameters=1, qat=qat)
    return folder / "checkpoint.json"


def test_convolutions_into_which_a_normalization_is_folded_are_found(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential()
    for name, width in (("first", 3), ("second", 8)):
        model.add_module(name, torch.nn.Conv2d(width, 8, 3, bias=False))
        normalization = torch.nn.BatchNorm2d(8)
        torch.nn.init.normal_(normalization.weight)
        torch.nn.init.uniform_(normalization.running_var, 0.5, 2)
        model.add_module(f"{name}_normalization", normalization)
    model.add_module("pool", torch.nn.AdaptiveAvgPool2d(1))
    model.add_module("flat", torch.nn.Flatten())
    model.add_module("head", torch.nn.Linear(8, 4))
    model.eval()
    weights = {name: model.get_submodule(name).weight.detach().numpy() for name in RANGES}
    checkpoint = checkpoint_of(tmp_path / "checkpoint", weights)
    program = torch.onnx.export(model, (torch.ones(2, 3, 8, 8),), dynamo=True, verbose=False)
    assert program is not None
    save_onnx(program.model_proto, tmp_path / "model.onnx")
    nodes = weighted_nodes(load_onnx(tmp_path / "model.onnx"))
    found = with_learnt_ranges({"other": [5, 6]}, tmp_path / "model.onnx", checkpoint)
    assert [found[node.input[0]] for node in nodes] == list(RANGES.values())
    assert [node.op_type for node in nodes] == ["Conv", "Conv", "Gemm"]
    assert found["other"] == [5, 6]
    # the normalizations are in the weights
    assert not [node for node in program.model_proto.graph.node if "Norm" in node.op_type]


def test_a_tensor_that_several_modules_read_has_the_range_of_all(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    weights = {name: draw.normal(size=(6, 4)).astype(np.float32) for name in RANGES}
    checkpoint = checkpoint_of(tmp_path / "checkpoint", weights)
    nodes = [helper.make_node("MatMul", ["x", name], [f"y_{name}"], name) for name in weights]
    nodes.append(helper.make_node("Sum", [f"y_{name}" for name in weights], ["logits"]))
    values = {name: helper.make_tensor_value_info(name, 1, None) for name in ("x", "logits")}
    constants = [numpy_helper.from_array(one.T.copy(), name) for name, one in weights.items()]
    graph = helper.make_graph(nodes, "g", [values["x"]], [values["logits"]], constants)
    save_onnx(helper.make_model(graph), tmp_path / "model.onnx")
    assert with_learnt_ranges({}, tmp_path / "model.onnx", checkpoint) == {"x": [-4.0, 3.0]}


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (6, 4, 1, 1)])
def test_other_weights_have_no_range(tmp_path: Path, shape: tuple[int, ...]) -> None:
    draw = np.random.default_rng(0)
    own = draw.normal(size=(6, 4)).astype(np.float32)
    known = LearntRanges(checkpoint_of(tmp_path / "checkpoint", {"head": own}))
    assert known.of_weights(own) == known.of_weights(-3 * own) == RANGES["head"]
    assert known.of_weights(draw.normal(size=shape)) is None
