import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tightrope.errors import ArtifactError, TightropeError
from tightrope.inputs.arrays import stack
from tightrope.onnx import trial_shapes
from tightrope.onnx.file import (
    load_onnx,
    max_sequence,
    require_one_file,
    save_onnx,
    set_max_sequence,
    simplified,
)
from tightrope.onnx.scales import with_scales_folded
from tightrope.onnx.session import require_equal, run_onnx
from tightrope.onnx.simplify import simplify_onnx
from tiny_model import LONGEST, TinyModel, evaluation_rows


def small_model() -> onnx.ModelProto:
    """x times a weight, plus a constant that two nodes compute, and a node that nothing uses."""
    weight = np.arange(12, dtype=np.float32).reshape(4, 3)
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["product"], "matmul"),
        helper.make_node("Add", ["one", "one"], ["two"], "constant"),
        helper.make_node("Add", ["product", "two"], ["y"], "add"),
        helper.make_node("Relu", ["x"], ["unused"], "dead"),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [
            numpy_helper.from_array(weight, "weight"),
            numpy_helper.from_array(np.ones(3, dtype=np.float32), "one"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


def with_metadata(model: onnx.ModelProto) -> onnx.ModelProto:
    for part in (model, model.graph, *model.graph.node, *model.graph.initializer):
        entry = part.metadata_props.add()
        entry.key, entry.value = "file", "/secret/place/model.py"
        part.doc_string = "/secret/place/model.py"
    return model


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    model = small_model()
    save_onnx(model, tmp_path / "a.onnx")
    found = load_onnx(tmp_path / "a.onnx")
    assert not found.metadata_props
    for ours, theirs in zip(found.graph.initializer, model.graph.initializer, strict=True):
        np.testing.assert_array_equal(numpy_helper.to_array(ours), numpy_helper.to_array(theirs))
    assert [str(node) for node in found.graph.node] == [str(node) for node in model.graph.node]


def test_metadata_and_documentation_are_not_in_the_file(tmp_path: Path) -> None:
    save_onnx(with_metadata(small_model()), tmp_path / "a.onnx")
    save_onnx(small_model(), tmp_path / "b.onnx")
    assert b"secret" not in (tmp_path / "a.onnx").read_bytes()
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_saving_what_was_loaded_gives_the_same_bytes(tmp_path: Path) -> None:
    save_onnx(small_model(), tmp_path / "a.onnx")
    save_onnx(load_onnx(tmp_path / "a.onnx"), tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_a_model_says_nothing_of_its_longest_sequence_until_it_is_set() -> None:
    model = small_model()
    assert max_sequence(model) is None
    set_max_sequence(model, 512)
    assert max_sequence(model) == 512
    set_max_sequence(model, 64)
    assert max_sequence(model) == 64
    assert len(model.metadata_props) == 1
    set_max_sequence(model, None)
    assert max_sequence(model) is None


@pytest.mark.parametrize("tokens", [None, 1, 512])
def test_the_longest_sequence_is_the_same_after_saving_and_loading(
    tmp_path: Path, tokens: int | None
) -> None:
    model = with_metadata(small_model())
    set_max_sequence(model, tokens)
    save_onnx(model, tmp_path / "a.onnx")
    found = load_onnx(tmp_path / "a.onnx")
    assert max_sequence(found) == tokens
    save_onnx(found, tmp_path / "b.onnx")
    assert max_sequence(load_onnx(tmp_path / "b.onnx")) == tokens
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_only_the_longest_sequence_stays_of_the_metadata(tmp_path: Path) -> None:
    model = small_model()
    set_max_sequence(model, 512)
    save_onnx(with_metadata(model), tmp_path / "a.onnx")
    assert b"secret" not in (tmp_path / "a.onnx").read_bytes()
    (entry,) = load_onnx(tmp_path / "a.onnx").metadata_props
    assert entry.value == "512"


@pytest.mark.parametrize("tokens", [None, 512])
def test_simplifying_keeps_the_longest_sequence_and_no_other_metadata(tokens: int | None) -> None:
    model = small_model()
    set_max_sequence(model, tokens)
    smaller = simplified(with_metadata(model))
    assert max_sequence(smaller) == tokens
    assert len(smaller.metadata_props) == (tokens is not None)


def test_every_file_of_a_model_says_how_many_tokens_it_takes(tiny: TinyModel) -> None:
    for path in (tiny.onnx, tiny.simplified, tiny.u8s8, tiny.s8s8):
        assert max_sequence(load_onnx(path)) == LONGEST


@pytest.mark.parametrize("tokens", ["64", None])
def test_another_longest_sequence_than_was_saved_is_refused(
    tmp_path: Path, tokens: str | None
) -> None:
    model = small_model()
    set_max_sequence(model, 512)
    save_onnx(model, tmp_path / "a.onnx")
    found = onnx.load(tmp_path / "a.onnx")
    (entry,) = [one for one in found.metadata_props if one.value == "512"]
    if tokens is None:
        found.metadata_props.remove(entry)
    else:
        entry.value = tokens
    onnx.save(found, tmp_path / "a.onnx")
    with pytest.raises(ArtifactError, match=r"a\.onnx: not the file that was written"):
        load_onnx(tmp_path / "a.onnx")


def test_a_longest_sequence_that_was_added_is_refused(tmp_path: Path) -> None:
    save_onnx(small_model(), tmp_path / "a.onnx")
    found = onnx.load(tmp_path / "a.onnx")
    marked = small_model()
    set_max_sequence(marked, 64)
    found.metadata_props.extend(marked.metadata_props)
    onnx.save(found, tmp_path / "a.onnx")
    with pytest.raises(ArtifactError, match=r"a\.onnx: not the file that was written"):
        load_onnx(tmp_path / "a.onnx")


def test_one_changed_weight_is_refused(tmp_path: Path) -> None:
    model = small_model()
    set_max_sequence(model, 512)
    save_onnx(model, tmp_path / "a.onnx")
    found = onnx.load(tmp_path / "a.onnx")
    weights = numpy_helper.to_array(found.graph.initializer[0]).copy()
    weights[0, 0] += 1
    found.graph.initializer[0].CopyFrom(numpy_helper.from_array(weights, "weight"))
    onnx.save(found, tmp_path / "a.onnx")
    with pytest.raises(ArtifactError, match=r"a\.onnx: not the file that was written"):
        load_onnx(tmp_path / "a.onnx")


def test_other_tools_read_the_file(tiny: TinyModel) -> None:
    for path in (tiny.onnx, tiny.simplified):
        onnx.checker.check_model(str(path), full_check=True)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9, 0.999, 0.99999])
def test_a_truncated_file_is_refused(tiny: TinyModel, tmp_path: Path, share: float) -> None:
    content = tiny.onnx.read_bytes()
    (tmp_path / "a.onnx").write_bytes(content[: int(share * len(content))])
    with pytest.raises(ArtifactError, match=r"a\.onnx: .*delete it and run again"):
        load_onnx(tmp_path / "a.onnx")


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_file_with_one_flipped_bit_is_refused(
    tiny: TinyModel, tmp_path: Path, share: float
) -> None:
    content = bytearray(tiny.onnx.read_bytes())
    content[int(share * len(content))] ^= 1
    (tmp_path / "a.onnx").write_bytes(content)
    with pytest.raises(ArtifactError, match=r"a\.onnx: .*delete it and run again"):
        load_onnx(tmp_path / "a.onnx")


def test_a_file_from_elsewhere_is_refused(tmp_path: Path) -> None:
    onnx.save(small_model(), tmp_path / "a.onnx")
    with pytest.raises(ArtifactError, match=r"a\.onnx: not the file that was written"):
        load_onnx(tmp_path / "a.onnx")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"a\.onnx: cannot be read"):
        load_onnx(tmp_path / "a.onnx")


def test_a_model_beyond_one_file_is_not_yet() -> None:
    require_one_file("a.onnx", 2**30)
    with pytest.raises(TightropeError, match=r"a\.onnx: not supported yet: the model has 2\.5 GiB"):
        require_one_file("a.onnx", 5 * 2**29)


def test_simplifying_folds_constants_and_drops_dead_nodes() -> None:
    batch = [{"x": np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)}]
    expected = run_onnx(small_model(), batch, threads=1)
    smaller = simplified(small_model())
    assert sorted(node.op_type for node in smaller.graph.node) in (["Add", "MatMul"], ["Gemm"])
    np.testing.assert_allclose(run_onnx(smaller, batch, threads=1)[0], expected[0], rtol=1e-6)


def test_simplifying_leaves_no_shapes_of_inner_tensors(tiny: TinyModel) -> None:
    assert not load_onnx(tiny.simplified).graph.value_info
    assert load_onnx(tiny.onnx).graph.value_info


def test_the_largest_difference_is_relative_to_the_largest_logit() -> None:
    expected = [np.array([[1.0, -4.0]]), np.array([[100.0, 0.0]])]
    found = [np.array([[1.0, -4.2]]), np.array([[101.0, 0.0]])]
    worst = require_equal(found, expected, path="a.onnx", tolerance=0.1)
    assert worst == pytest.approx(0.05)


@pytest.mark.parametrize("wrong", [4.0, np.nan, np.inf])
def test_a_difference_beyond_the_tolerance_is_refused(wrong: float) -> None:
    expected = [np.ones((3, 2))]
    found = [np.array([[1, 1], [1, wrong], [1, 1]])]
    with pytest.raises(ArtifactError, match=r"a\.onnx: its outputs differ .* on a batch of 3"):
        require_equal(found, expected, path="a.onnx", tolerance=1e-4)


def test_logits_of_another_shape_are_refused() -> None:
    with pytest.raises(ArtifactError, match=re.escape("logits (2, 1), the checkpoint gives (2,")):
        require_equal([np.ones((2, 1))], [np.ones((2, 3))], path="a.onnx", tolerance=1e-4)


def test_a_model_whose_answers_are_not_the_checkpoints_is_not_simplified(
    tiny: TinyModel, tmp_path: Path
) -> None:
    model = load_onnx(tiny.onnx)
    bias = next(one for one in model.graph.initializer if one.name.endswith("classifier.bias"))
    shifted = numpy_helper.to_array(bias) + np.array([0, 0.01, 0], dtype=np.float32)
    bias.CopyFrom(numpy_helper.from_array(shifted, bias.name))
    save_onnx(model, tmp_path / "model.onnx")
    target = tmp_path / "model.simplified.onnx"
    options = {"threads": 1}
    with pytest.raises(ArtifactError, match=r"model\.onnx: its outputs differ from the checkpoint"):
        simplify_onnx(
            tmp_path / "model.onnx", tiny.checkpoint, tiny.split("timing"), target, **options
        )
    assert not target.exists()


def test_a_model_that_ignores_its_mask_is_not_simplified(tiny: TinyModel, tmp_path: Path) -> None:
    """It runs, and is wrong for padded batches only."""
    model = load_onnx(tiny.onnx)
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            if name == "attention_mask":
                node.input[index] = "always_one"
    model.graph.initializer.append(numpy_helper.from_array(np.array(1), "one_of_all"))
    node = helper.make_node("Max", ["attention_mask", "one_of_all"], ["always_one"], "ignore")
    model.graph.node.insert(0, node)
    save_onnx(model, tmp_path / "model.onnx")
    with pytest.raises(ArtifactError, match="its outputs differ from the checkpoint's"):
        simplify_onnx(
            tmp_path / "model.onnx",
            tiny.checkpoint,
            tiny.split("timing"),
            tmp_path / "model.simplified.onnx",
            threads=1,
        )


def test_runs_are_the_same_with_one_thread_and_two(tiny: TinyModel) -> None:
    batch = stack(evaluation_rows(tiny)[:8])
    one, two = (
        run_onnx(load_onnx(tiny.simplified), [batch], threads=threads)[0] for threads in (1, 2)
    )
    np.testing.assert_allclose(one, two, atol=1e-5)


def test_an_input_that_is_not_read_stays_an_input() -> None:
    model = small_model()
    model.graph.input.append(helper.make_tensor_value_info("unread", TensorProto.INT64, ["n"]))
    names = [one.name for one in model.graph.input]
    assert [one.name for one in simplified(model).graph.input] == names


def test_a_model_that_answers_with_no_number_is_named() -> None:
    with pytest.raises(ArtifactError, match=re.escape("a.onnx: the checkpoint returns NaN or inf")):
        require_equal([np.ones((2, 3))], [np.full((2, 3), np.nan)], path="a.onnx", tolerance=1e-4)


def test_a_model_that_cannot_run_is_an_error_with_its_reason() -> None:
    model = small_model()
    model.graph.node[-1].domain = "of.elsewhere"
    model.opset_import.append(helper.make_opsetid("of.elsewhere", 1))
    with pytest.raises(ArtifactError, match=r"ONNX Runtime cannot run the model: .*of\.elsewhere"):
        run_onnx(model, [], threads=1)


def test_where_the_unread_rows_cannot_be_told_the_model_is_simplified_without(
    tiny: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Here the calls in which shapes are seen are longer than the model takes."""
    monkeypatch.setattr(trial_shapes, "TRIALS", ((1, 10_000), (2, 10_000)))
    target = tmp_path / "model.simplified.onnx"
    simplify_onnx(tiny.onnx, tiny.checkpoint, tiny.split("timing"), target, threads=1)
    assert (
        "unused tokens pruned: not possible here: ONNX Runtime cannot run"
        in capsys.readouterr().out
    )
    full = with_scales_folded(simplified(load_onnx(tiny.onnx)))
    assert [node.op_type for node in load_onnx(target).graph.node] == [
        node.op_type for node in full.graph.node
    ]
