import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_text import kinds, onnx_model
from tightrope.errors import ArtifactError
from tightrope.onnx import session
from tightrope.onnx.file import load_onnx, max_sequence, save_onnx, set_max_sequence, simplified
from tightrope.onnx.session import require_equal, run_onnx
from tightrope.onnx.simplify import simplify_onnx, with_scales_folded
from tiny_model import LONGEST, TinyModel

# a constant that two nodes compute, a node that nothing uses, and an input that nothing reads
TEXT = """net (float[batch, 4] x, int64[n] unread) => (float[batch, 3] y) {
    product = MatMul (x, weight)
    two = Add (one, one)
    y = Add (product, two)
    unused = Relu (x)
}"""


def small_model(tokens: int | None = None) -> onnx.ModelProto:
    weight = np.arange(12.0).reshape(4, 3)
    model = onnx_model(TEXT, weight=weight, one=np.ones(3))
    onnx.checker.check_model(model, full_check=True)
    set_max_sequence(model, tokens)
    return model


def with_metadata(model: onnx.ModelProto) -> onnx.ModelProto:
    for part in (model, model.graph, *model.graph.node, *model.graph.initializer):
        entry = part.metadata_props.add()
        entry.key, entry.value = "file", "/secret/place/model.py"
        part.doc_string = "/secret/place/model.py"
    return model


def saved(model: onnx.ModelProto, path: Path) -> bytes:
    save_onnx(model, path)
    return path.read_bytes()


@pytest.mark.parametrize("tokens", [None, 512])
def test_a_file_has_the_graph_and_the_longest_sequence(tmp_path: Path, tokens: int | None) -> None:
    """The bytes are the same again when what was loaded is saved."""
    path = tmp_path / "a.onnx"
    content = saved(with_metadata(small_model(tokens)), path)
    assert b"secret" not in content
    found = load_onnx(path)
    assert kinds(found) == kinds(small_model())
    tensors = [one.raw_data for one in found.graph.initializer]
    assert tensors == [one.raw_data for one in small_model().graph.initializer]
    assert max_sequence(found) == tokens
    assert saved(small_model(tokens), path) == saved(found, path) == content


def test_every_file_of_a_model_says_how_many_tokens_it_takes(tiny: TinyModel) -> None:
    for path in (tiny.onnx, tiny.simplified, tiny.u8s8, tiny.s8s8):
        assert max_sequence(load_onnx(path)) == LONGEST
    onnx.checker.check_model(str(tiny.simplified), full_check=True)


@pytest.mark.parametrize("tokens", [None, 512])
def test_simplifying_folds_constants_and_keeps_the_inputs(tokens: int | None) -> None:
    batch = [{"x": np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)}]
    batch[0]["unread"] = np.array([0])
    expected = run_onnx(small_model(), batch, threads=1)
    smaller = simplified(with_metadata(small_model(tokens)))
    assert sorted(kinds(smaller)) in (["Add", "MatMul"], ["Gemm"])
    assert smaller.graph.input == small_model().graph.input
    assert not smaller.graph.value_info
    assert max_sequence(smaller) == tokens
    assert len(smaller.metadata_props) == (tokens is not None)
    np.testing.assert_allclose(run_onnx(smaller, batch, threads=1)[0], expected[0], rtol=1e-6)


DIFFERENT = "its outputs differ from the checkpoint's by"


@pytest.mark.parametrize(
    ("found", "expected", "reason"),
    [
        ([[1, 1], [1, 4]], np.ones((2, 2)), f"{DIFFERENT} 3 (all"),
        ([[1, 1], [1, np.nan]], np.ones((2, 2)), f"{DIFFERENT} nan "),
        (np.ones((2, 1)), np.ones((2, 3)), "logits (2, 1), the checkpoint gives (2, 3)"),
        (np.ones((2, 3)), np.full((2, 3), np.nan), "the checkpoint returns NaN or inf"),
    ],
)
def test_other_logits_are_refused(found: Any, expected: np.ndarray, reason: str) -> None:
    # the difference is relative to the largest logit of its batch
    pairs = [np.array([[1.0, -4.2]])], [np.array([[1.0, -4.0]])]
    assert require_equal(*pairs, path="a.onnx", tolerance=0.1) == pytest.approx(0.05)
    with pytest.raises(ArtifactError, match=re.escape(f"a.onnx: {reason}")):
        require_equal([np.array(found)], [expected], path="a.onnx", tolerance=1e-4)


def test_a_model_of_other_answers_is_not_simplified(tiny: TinyModel, tmp_path: Path) -> None:
    """Here it runs, and is wrong for padded batches only."""
    model = load_onnx(tiny.onnx)
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            if name == "attention_mask":
                node.input[index] = "always_one"
    model.graph.initializer.append(numpy_helper.from_array(np.array(1), "one_of_all"))
    node = helper.make_node("Max", ["attention_mask", "one_of_all"], ["always_one"], "ignore")
    model.graph.node.insert(0, node)
    source, target = tmp_path / "model.onnx", tmp_path / "model.simplified.onnx"
    save_onnx(model, source)
    with pytest.raises(ArtifactError, match=r"model\.onnx: its outputs differ from the checkpoint"):
        simplify_onnx(source, tiny.checkpoint, tiny.split("timing"), target, threads=1)
    assert not target.exists()


def test_where_unread_rows_cannot_be_told_none_is_pruned(tiny, tmp_path, monkeypatch, capsys):
    """Here the calls in which shapes are seen are longer than the model takes."""
    monkeypatch.setattr(session, "TRIALS", ((1, 10_000), (2, 10_000)))
    target = tmp_path / "model.simplified.onnx"
    simplify_onnx(tiny.onnx, tiny.checkpoint, tiny.split("timing"), target, threads=1)
    printed = capsys.readouterr().out
    assert "unused tokens pruned: not possible here: ONNX Runtime cannot run" in printed
    full = with_scales_folded(simplified(load_onnx(tiny.onnx)))
    assert kinds(load_onnx(target)) == kinds(full)
