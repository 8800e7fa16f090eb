"""An ONNX file of another's making: refused with its reason, or given the pipeline's names."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_text import HEAD, onnx_model
from tightrope.errors import ArtifactError, TightropeError
from tightrope.onnx.file import read_onnx_file
from tightrope.onnx.imported import (
    class_count,
    label_order,
    standardized,
    vocabulary,
    with_outputs_in,
)
from tightrope.onnx.session import run_onnx

NAMES = {"input_ids": "ids", "attention_mask": "mask", "token_type_ids": "segments"}
ROWS, CLASSES = 7, 3
INPUTS = "int64[n, t] ids, int64[n, t] mask"
# rows of a table for the tokens, summed where the mask is 1
LINES = """looked = Gather (table, {ids})
    weight = Cast <to = 1> ({mask})
    column = Unsqueeze (weight, last)
    summed = Mul (looked, column)
"""
SUM = "scores = ReduceSum <keepdims = 0> (summed, middle)"
EXPECTED = [[27, 30, 33], [12, 13, 14]]


def small_model(
    inputs: str = INPUTS,
    *,
    before: str = "",
    ids: str = "ids",
    mask: str = "mask",
    end: str = SUM,
    output: str = "float[n, 3] scores",
    head: str = HEAD,
) -> onnx.ModelProto:
    table = np.arange(ROWS * CLASSES, dtype=np.float32).reshape(ROWS, CLASSES)
    lines = before + LINES.format(ids=ids, mask=mask) + end
    text = f"net ({inputs}) => ({output}) {{ {lines} }}"
    return onnx_model(text, head, table=table, last=[2], middle=[1], always=[1])


def standard(model: onnx.ModelProto, **names: str) -> onnx.ModelProto:
    return standardized(model, NAMES | names, source="onnx:m")


def answers(model: onnx.ModelProto) -> np.ndarray:
    ids, mask = [[1, 2, 6], [4, 0, 0]], [[1, 1, 1], [1, 0, 0]]
    batch = {"input_ids": np.array(ids), "attention_mask": np.array(mask)}
    return run_onnx(model, [batch], threads=1)[0]


BRANCH = """flag = Cast <to = 9> (always)
    chosen = If (flag) <
        then_branch = a () => (int64[n, t] same) { same = Identity (mask) },
        else_branch = b () => (int64[n, t] other) { other = Identity (ids) }
    >
"""
TWICE = "float[n, 3] {0}, float[n, 3] other"
SEGMENTS = {"before": "shifted = Add (ids, segments)\n", "ids": "shifted"}
OTHERS = "int64[n, t] attention_mask, int64[n, t] input_ids"
SWAPPED = {"input_ids": "attention_mask", "attention_mask": "input_ids"}
LOGITS = SUM.replace("scores", "logits")
DOUBLE = f"{LOGITS}\nscores = Cast <to = 11> (logits)"


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (small_model(), {}),
        (small_model("int32[n, t] ids, int32[n, t] mask"), {}),
        # segments become zeros
        (small_model(f"{INPUTS}, int64[n, t] segments", **SEGMENTS), {}),
        # a tensor inside has the name of an input, and names of inputs are swapped
        (small_model(before="input_ids = Identity (ids)\n", ids="input_ids"), {}),
        (small_model(OTHERS, ids="attention_mask", mask="input_ids"), SWAPPED),
        # an input is read in a branch
        (small_model(before=BRANCH, mask="chosen"), {}),
        # an output of another type, where a tensor inside is called logits
        (small_model(end=DOUBLE, output="double[n, 3] scores"), {}),
        # of two outputs the one that is called logits
        (small_model(end=f"{LOGITS}\nother = Neg (logits)", output=TWICE.format("logits")), {}),
    ],
)
def test_it_takes_the_pipelines_names(model: onnx.ModelProto, names: dict[str, str]) -> None:
    found = standard(model, **names)
    assert [one.name for one in found.graph.input] == ["input_ids", "attention_mask"]
    assert {one.type.tensor_type.elem_type for one in found.graph.input} == {TensorProto.INT64}
    assert [one.name for one in found.graph.output] == ["logits"]
    assert (answers(found).tolist(), answers(found).dtype) == (EXPECTED, np.float32)


def test_classes_and_vocabulary_are_read_from_the_graph() -> None:
    model = standard(small_model())
    # one that has the names already stays as it is
    assert standard(model, **{name: name for name in NAMES}) == model
    assert (class_count(model), vocabulary(model, "onnx:m")) == (CLASSES, ROWS)
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_param = "classes"
    assert class_count(model) == CLASSES
    # looked up through another name, in a table that is a constant of the graph
    model = standard(small_model(before="input_ids = Identity (ids)\n", ids="input_ids"))
    table = helper.make_node("Constant", [], ["table"], value=model.graph.initializer.pop(0))
    model.graph.node.insert(0, table)
    assert vocabulary(model, "onnx:m") == ROWS


def test_outputs_are_put_in_the_order_of_the_data_which_may_have_none() -> None:
    model = standard(small_model())
    found = answers(with_outputs_in([2, 0, 1], model))
    np.testing.assert_array_equal(found, np.array(EXPECTED)[:, [2, 0, 1]])
    known = ["a", "b", "c"]
    assert label_order(model, known, None, "onnx:m") == (known, None)
    assert label_order(model, known, known, "onnx:m") == (known, None)
    assert label_order(model, known, ["b", "c", "a"], "onnx:m") == (known, [2, 0, 1])
    assert label_order(model, None, ["b", "c", "a"], "onnx:m") == (["b", "c", "a"], None)
    with pytest.raises(TightropeError, match="has 3 outputs, labels lists 2 names"):
        label_order(model, None, ["b", "c"], "onnx:m")


UNLIKE = r"tokens, mask; expected are ids, mask \(and segments\); say its names"
FIXED = "input ids is fixed to 1 x any; export it with dynamic axes"
NEITHER = r"none of its outputs \(scores, other\) is \[batch, classes\] alone"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"inputs": "int64[n, t] tokens, int64[n, t] mask"}, f"its inputs are {UNLIKE}"),
        ({"inputs": f"{INPUTS}, int64[n, t] more"}, "its inputs are ids, mask, more"),
        ({"inputs": "int64[n, t] ids, float[n, t] mask"}, "input mask is no int64 or int32"),
        ({"inputs": "int64[1, t] ids, int64[1, t] mask"}, FIXED),
        ({"end": f"{SUM}\nother = Neg (scores)", "output": TWICE.format("scores")}, NEITHER),
    ],
)
def test_inputs_and_outputs_that_do_not_fit_are_named(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(TightropeError, match=f"^onnx:m: {reason}"):
        standard(small_model(**options))


# an old one, and one without standard operators
OLD = "net (int64[n] ids) => (int64[n] y) { y = Identity (ids) }", HEAD.replace("21", "9")
OWN = "net (int64[n] ids) => (int64[n] y) { y = of.elsewhere.Own (ids) }"
NO_STANDARD = OWN, HEAD.replace('"" : 21', '"of.elsewhere" : 1')


@pytest.mark.parametrize(
    ("content", "size", "reason"),
    [
        (b"no protobuf at all", None, "not a valid ONNX file"),
        (onnx_model(*OLD).SerializeToString(), None, "opset 9 is too old"),
        (onnx_model(*NO_STANDARD).SerializeToString(), None, "opset 0 is too old"),
        (b"", 2**31, r"not supported yet: .* 2\.0 GiB"),
    ],
)
def test_a_file_that_cannot_be_taken_is_refused(tmp_path, content, size, reason) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    os.truncate(tmp_path / "model.onnx", size or len(content))
    with pytest.raises((ArtifactError, TightropeError), match=f"^onnx:m: {reason}"):
        read_onnx_file("onnx:m", tmp_path / "model.onnx")


def outside() -> TensorProto:
    """A tensor whose data are in another file."""
    tensor = onnx.numpy_helper.from_array(np.zeros(3, np.float32), "outside")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    return tensor


@pytest.mark.parametrize("place", ["initializer", "branch", "function"])
def test_weights_in_another_file_are_refused_wherever_they_are(tmp_path: Path, place: str) -> None:
    model = small_model()
    constant = helper.make_node("Constant", [], ["outside"], value=outside())
    if place == "initializer":
        model.graph.initializer.append(outside())
    elif place == "branch":
        inner = helper.make_graph([constant], "inner", [], [])
        model.graph.node.append(helper.make_node("If", ["x"], ["y"], then_branch=inner))
    else:
        version = [helper.make_opsetid("", 21)]
        model.functions.append(helper.make_function("own", "f", [], [], [constant], version))
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(TightropeError, match="onnx:m: not supported yet: weights in a second file"):
        read_onnx_file("onnx:m", tmp_path / "model.onnx")
