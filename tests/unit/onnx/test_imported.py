"""An ONNX file of another's making: refused with its reason, or given the pipeline's names."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tightrope.errors import ArtifactError, TightropeError
from tightrope.onnx.imported import class_count, label_order, read_onnx_file, vocabulary
from tightrope.onnx.interface import standardized, with_outputs_in
from tightrope.onnx.session import run_onnx

NAMES = {"input_ids": "ids", "attention_mask": "mask", "token_type_ids": "segments"}
ROWS, CLASSES = 7, 3


def small_model(
    *,
    inputs: dict[str, int] | None = None,
    shape: tuple[Any, Any] = ("n", "t"),
    output: str = "scores",
    opset: int = 21,
) -> onnx.ModelProto:
    """Logits: rows of a table for the tokens, summed where the mask is 1."""
    inputs = inputs or {"ids": TensorProto.INT64, "mask": TensorProto.INT64}
    table = np.arange(ROWS * CLASSES, dtype=np.float32).reshape(ROWS, CLASSES)
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["looked"]),
        helper.make_node("Cast", ["mask"], ["weight"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["weight", "last"], ["column"]),
        helper.make_node("Mul", ["looked", "column"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "middle"], [output], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind in inputs.items()],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["n", CLASSES])],
        [
            onnx.numpy_helper.from_array(table, "table"),
            onnx.numpy_helper.from_array(np.array([2]), "last"),
            onnx.numpy_helper.from_array(np.array([1]), "middle"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def answers(model: onnx.ModelProto) -> np.ndarray:
    batch = {
        "input_ids": np.array([[1, 2, 6], [4, 0, 0]]),
        "attention_mask": np.array([[1, 1, 1], [1, 0, 0]]),
    }
    return run_onnx(model, [batch], threads=1)[0]


EXPECTED = [[27, 30, 33], [12, 13, 14]]


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.INT32])
def test_it_takes_the_pipelines_names_and_types_and_answers_the_same(kind: int) -> None:
    model = standardized(small_model(inputs={"ids": kind, "mask": kind}), NAMES, source="onnx:m")
    assert [one.name for one in model.graph.input] == ["input_ids", "attention_mask"]
    assert {one.type.tensor_type.elem_type for one in model.graph.input} == {TensorProto.INT64}
    assert [one.name for one in model.graph.output] == ["logits"]
    np.testing.assert_array_equal(answers(model), EXPECTED)


def test_segments_become_zeros() -> None:
    kinds = dict.fromkeys(("ids", "mask", "segments"), TensorProto.INT64)
    given = small_model(inputs=kinds)
    shifted = helper.make_node("Add", ["ids", "segments"], ["shifted"])
    given.graph.node[0].input[1] = "shifted"
    given.graph.node.insert(0, shifted)
    np.testing.assert_array_equal(answers(standardized(given, NAMES, source="onnx:m")), EXPECTED)


def test_a_model_that_has_the_names_already_stays_as_it_is() -> None:
    own = {name: name for name in NAMES}
    once = standardized(small_model(), NAMES, source="onnx:m")
    assert standardized(once, own, source="onnx:m") == once


@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        (("attention_mask", "input_ids"), ("attention_mask", "input_ids")),
        (("ids", "attention_mask"), ("ids", "attention_mask")),
    ],
)
def test_names_that_are_swapped_or_used_inside_are_no_matter(
    inputs: tuple[str, str], names: tuple[str, str]
) -> None:
    """The tokens come as the first of `inputs`; a tensor inside is called input_ids."""
    given = small_model(inputs=dict.fromkeys(inputs, TensorProto.INT64))
    inner = "shifted" if "input_ids" in inputs else "input_ids"
    given.graph.node[0].input[1] = inner
    given.graph.node[1].input[0] = inputs[1]
    given.graph.node.insert(0, helper.make_node("Identity", [inputs[0]], [inner]))
    mapping = dict(zip(("input_ids", "attention_mask"), names, strict=True))
    model = standardized(given, {**mapping, "token_type_ids": "segments"}, source="onnx:m")
    np.testing.assert_array_equal(answers(model), EXPECTED)
    assert vocabulary(model, "onnx:m") == ROWS


def test_outputs_are_put_in_an_order_and_a_tensor_inside_may_have_the_new_names() -> None:
    given = small_model(output="logits_of_the_file")
    model = standardized(given, NAMES, source="onnx:m")
    found = answers(with_outputs_in([2, 0, 1], model))
    np.testing.assert_array_equal(found, np.array(EXPECTED)[:, [2, 0, 1]])


def test_names_of_outputs_are_put_in_the_order_of_the_data_which_may_have_none() -> None:
    model = standardized(small_model(), NAMES, source="onnx:m")
    known = ["a", "b", "c"]
    assert label_order(model, known, None, "onnx:m") == (known, None)
    assert label_order(model, known, known, "onnx:m") == (known, None)
    assert label_order(model, known, ["b", "c", "a"], "onnx:m") == (known, [2, 0, 1])
    assert label_order(model, None, ["b", "c", "a"], "onnx:m") == (["b", "c", "a"], None)
    with pytest.raises(TightropeError, match="has 3 outputs, labels lists 2 names"):
        label_order(model, None, ["b", "c"], "onnx:m")


@pytest.mark.parametrize("output", ["logits", "probabilities"])
def test_an_output_in_another_type_becomes_float32(output: str) -> None:
    """With `probabilities` a tensor inside is called logits."""
    given = small_model(output="logits")
    last = "logits" if output == "probabilities" else "sums"
    given.graph.node[-1].output[0] = last
    given.graph.node.append(helper.make_node("Cast", [last], [output], to=TensorProto.DOUBLE))
    given.graph.output[0].name = output
    given.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    found = answers(standardized(given, NAMES, source="onnx:m"))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, EXPECTED)


def test_an_input_that_a_branch_reads_is_renamed_there_too() -> None:
    given = small_model()
    shape = helper.make_tensor_value_info("same", TensorProto.FLOAT, None)
    branches = [
        helper.make_graph([helper.make_node("Cast", ["mask"], ["same"], to=1)], "b", [], [shape]),
        helper.make_graph([helper.make_node("Cast", ["ids"], ["same"], to=1)], "b", [], [shape]),
    ]
    given.graph.initializer.append(onnx.numpy_helper.from_array(np.array(True), "always"))
    given.graph.node[1].CopyFrom(
        helper.make_node(
            "If", ["always"], ["weight"], then_branch=branches[0], else_branch=branches[1]
        )
    )
    np.testing.assert_array_equal(answers(standardized(given, NAMES, source="onnx:m")), EXPECTED)


def test_a_table_may_be_a_constant_of_the_graph() -> None:
    given = small_model()
    table = given.graph.initializer[0]
    given.graph.node.insert(0, helper.make_node("Constant", [], ["table"], value=table))
    del given.graph.initializer[0]
    assert vocabulary(standardized(given, NAMES, source="onnx:m"), "onnx:m") == ROWS


def test_a_file_without_standard_operators_is_refused(tmp_path: Path) -> None:
    given = small_model()
    del given.graph.node[:]
    given.graph.node.append(
        helper.make_node("Own", ["ids", "mask"], ["scores"], domain="of.elsewhere")
    )
    del given.opset_import[:]
    given.opset_import.append(helper.make_opsetid("of.elsewhere", 1))
    onnx.save(given, tmp_path / "model.onnx")
    with pytest.raises(TightropeError, match="opset 0 is too old"):
        read_onnx_file("onnx:m", tmp_path / "model.onnx")


def test_classes_and_vocabulary_are_read_from_the_graph() -> None:
    model = standardized(small_model(), NAMES, source="onnx:m")
    assert class_count(model) == CLASSES
    assert vocabulary(model, "onnx:m") == ROWS
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_param = "classes"
    assert class_count(model) == CLASSES


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"inputs": {"tokens": 7, "mask": 7}},
            "m: its inputs are tokens, mask; .* ids, mask",
        ),
        ({"inputs": {"ids": 7, "mask": 7, "more": 7}}, "its inputs are ids, mask, more"),
        ({"inputs": {"ids": 7, "mask": 1}}, "input mask is no int64 or int32"),
        ({"shape": (1, "t")}, "input ids is fixed to 1 x any; export it with dynamic axes"),
    ],
)
def test_inputs_that_do_not_fit_are_named(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(TightropeError, match=reason):
        standardized(small_model(**options), NAMES, source="onnx:m")


def test_two_flat_outputs_of_which_none_is_called_logits_are_named() -> None:
    model = small_model()
    model.graph.node.append(helper.make_node("Neg", ["scores"], ["other"]))
    model.graph.output.append(helper.make_tensor_value_info("other", 1, ["n", CLASSES]))
    with pytest.raises(TightropeError, match=r"outputs \(scores, other\)"):
        standardized(model, NAMES, source="onnx:m")


def saved(model: onnx.ModelProto, folder: Path) -> Path:
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def test_a_file_that_is_no_onnx_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no protobuf at all")
    with pytest.raises(ArtifactError, match="onnx:m: not a valid ONNX file"):
        read_onnx_file("onnx:m", tmp_path / "model.onnx")


def test_an_old_opset_is_refused(tmp_path: Path) -> None:
    model = small_model()
    model.opset_import[0].version = 9
    del model.graph.node[2:]
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("looked", 1, ["n", "t", CLASSES]))
    with pytest.raises(TightropeError, match="opset 9 is too old"):
        read_onnx_file("onnx:m", saved(model, tmp_path))


def test_weights_in_a_second_file_are_not_yet_read(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    model = small_model()
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="weights.bin")
    with pytest.raises(TightropeError, match="onnx:m: not supported yet: weights in a second file"):
        read_onnx_file("onnx:m", path)


def test_a_model_above_two_gib_is_not_yet_taken(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    with path.open("wb") as stream:
        stream.truncate(2**31)
    with pytest.raises(TightropeError, match=r"onnx:m: not supported yet: .* 2\.0 GiB"):
        read_onnx_file("onnx:m", path)


def outside() -> TensorProto:
    """A tensor whose data are in another file."""
    tensor = onnx.numpy_helper.from_array(np.zeros(3, np.float32), "outside")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    return tensor


@pytest.mark.parametrize("place", ["initializer", "constant", "branch", "function"])
def test_weights_in_another_file_are_refused_wherever_they_are(tmp_path: Path, place: str) -> None:
    model = small_model()
    constant = helper.make_node("Constant", [], ["outside"], value=outside())
    if place == "initializer":
        model.graph.initializer.append(outside())
    elif place == "constant":
        model.graph.node.append(constant)
    elif place == "branch":
        inner = helper.make_graph([constant], "inner", [], [])
        model.graph.node.append(helper.make_node("If", ["x"], ["y"], then_branch=inner))
    else:
        version = [helper.make_opsetid("", 21)]
        model.functions.append(helper.make_function("own", "f", [], [], [constant], version))
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(TightropeError, match="weights in a second file"):
        read_onnx_file("onnx:m", tmp_path / "model.onnx")
