"""The files on a graph: the structure for Netron, and what is written of a failure."""

import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tightrope.artifacts.failures import failure_in, write_failure
from tightrope.errors import ArtifactError
from tightrope.jobs.child import Limits
from tightrope.onnx.file import load_onnx
from tightrope.report.graphs.describe import LEFT_OUT, describe_graph, without_weights
from tiny_convolutions import make_convolutions
from tiny_model import TinyModel

LIMITS = Limits(memory_bytes=4e9, seconds=60)


def described(source: Path, folder: Path, costs: Path | None = None) -> tuple[Path, Path]:
    record, structure = (folder / f"graph.{kind}" for kind in ("json", "onnx"))
    describe_graph(source, costs, record, structure, title="tiny graph", limits=LIMITS)
    return record, structure


def test_the_structure_has_every_operator_and_shape_and_no_weights(tiny, tmp_path):
    record, structure = described(tiny.u8s8, tmp_path)
    assert structure.stat().st_size < tiny.u8s8.stat().st_size / 2
    bare = onnx.load(structure, load_external_data=False)
    model = load_onnx(tiny.u8s8)
    assert [node.name for node in bare.graph.node] == [node.name for node in model.graph.node]
    for ours, theirs in zip(bare.graph.initializer, model.graph.initializer, strict=True):
        assert (ours.name, ours.data_type) == (theirs.name, theirs.data_type)
        assert list(ours.dims) == list(theirs.dims)
    left_out = [one for one in bare.graph.initializer if one.data_location == TensorProto.EXTERNAL]
    assert left_out and all(not one.raw_data for one in left_out)
    assert bare.graph.value_info and "tiny graph" in bare.doc_string
    # who tries to run it reads that weights are left out
    with pytest.raises(Exception, match=LEFT_OUT):
        onnx.load(structure)
    (tmp_path / "again").mkdir()
    pairs = zip((record, structure), described(tiny.u8s8, tmp_path / "again"), strict=True)
    assert all(one.read_bytes() == other.read_bytes() for one, other in pairs)


def test_constants_that_say_what_a_graph_does_stay_and_weights_in_inner_graphs_do_not() -> None:
    model = make_convolutions()
    small = [tensor for tensor in model.graph.initializer if tensor.ByteSize() < 500]
    kept = {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in small}
    found = {tensor.name: tensor for tensor in without_weights(model, "").graph.initializer}
    assert kept
    for name, values in kept.items():
        assert numpy_helper.to_array(found[name]).tolist() == values
    large = helper.make_tensor("w", TensorProto.FLOAT, [64, 64], [0.5] * 4096)
    y, c = (helper.make_tensor_value_info(name, TensorProto.FLOAT, []) for name in "yc")
    constant = helper.make_node("Constant", [], ["y"], value=large)
    inner = helper.make_graph([constant], "body", [], [y])
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    whole = helper.make_model(helper.make_graph([node], "net", [c], [y]))
    assert without_weights(whole, "").ByteSize() < 1000


def test_of_a_file_that_holds_a_failure_both_say_why(tiny: TinyModel, tmp_path: Path) -> None:
    source = tmp_path / "quantized.onnx"
    write_failure(source, reason="not quantized: killed & <out> of memory", transient=False)
    for path in described(source, tmp_path):
        reason = "not quantized: killed & <out> of memory"
        assert failure_in(path) == {"reason": reason, "transient": False}
    # costs that were not measured leave the graph without shares of the time
    write_failure(tmp_path / "costs.json", reason="too slow", transient=False)
    record, _ = described(tiny.simplified, tmp_path, tmp_path / "costs.json")
    assert json.loads(record.read_text())["time"] is None


def test_a_file_that_was_changed_is_refused_and_nothing_is_written(tiny, tmp_path):
    source = tmp_path / "changed.onnx"
    model = onnx.load(tiny.simplified)
    model.graph.node[0].name = "another"
    onnx.save(model, source)
    with pytest.raises(ArtifactError, match=r"changed\.onnx"):
        described(source, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["changed.onnx"]
