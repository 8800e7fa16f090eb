"""Weights that become zero, in a model and in the course of its training."""

from pathlib import Path

import pytest
import torch
from breaking import Breaking, Killed
from splits import split_of
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.inputs.encode import read_split
from tightrope.model.changes import Changes
from tightrope.model.module import load_module
from tightrope.model.sparsity import Sparsity, kept, share_at, sparse_weights
from tiny_training import RECIPE, logits, prepare_source, prepare_texts, train


@pytest.mark.parametrize(
    ("share", "pattern", "first", "second"),
    [
        (0.5, "any", [0, 0, 0, 0], [1, 1, 1, 1]),
        (0.0, "any", [1, 1, 1, 1], [1, 1, 1, 1]),
        (0.5, "2:4", [1, 0, 1, 0], [1, 1, 0, 0]),
        # half of the groups: the first one loses less
        (0.25, "2:4", [1, 0, 1, 0], [1, 1, 1, 1]),
    ],
)
def test_the_smallest_weights_are_zero(
    share: float, pattern: str, first: list[int], second: list[int]
) -> None:
    sizes = torch.tensor([[4.0, 1.0, 3.0, 2.0], [8.0, 7.0, 6.0, 5.0]])
    assert kept(sizes, share, pattern).int().tolist() == [first, second]


def test_the_share_grows_and_stays_in_the_last_third() -> None:
    shares = [share_at(step / 30, 0.8) for step in range(31)]
    assert shares == sorted(shares)
    assert (shares[0], shares[20], shares[30]) == (0, 0.8, 0.8)


@pytest.mark.parametrize("pattern", ["any", "2:4"])
def test_a_trained_model_is_as_sparse_as_asked_and_knows_the_labels(
    pattern: str, tmp_path: Path
) -> None:
    source, texts = prepare_source(tmp_path / "source"), prepare_texts(tmp_path / "texts")
    changes = Changes(sparsity=Sparsity(0.5, pattern))
    student = train(tmp_path / "sparse", source, texts, RECIPE, changes=changes)
    facts = read_manifest(student, CheckpointManifest)["sparsity"]
    assert facts is not None
    assert facts["zeros"] == pytest.approx(0.5, abs=0.01)
    weights = sparse_weights(load_module(student.parent, torch.float32))
    if pattern == "2:4":
        assert all(((one.view(-1, 4) != 0).sum(1) <= 2).all() for one in weights)
    labels = [example["label"] for example in read_split(split_of(texts, "evaluation"))]
    assert (logits(student, texts).argmax(-1) == labels).mean() > 0.95


def test_without_a_training_it_is_sparse_at_once_and_packs_smaller(tmp_path: Path) -> None:
    texts = prepare_texts(tmp_path / "texts")
    dense = train(tmp_path / "dense", prepare_source(tmp_path / "source"), texts, RECIPE)
    source = prepare_source(tmp_path / "again", f"path:{dense.parent}")
    found = []
    for share in (0.1, 0.9):
        one = train(tmp_path / f"{share}", source, texts, changes=Changes(sparsity=Sparsity(share)))
        facts = read_manifest(one, CheckpointManifest)["sparsity"]
        assert facts is not None
        assert facts["zeros"] == pytest.approx(share, abs=0.01)
        found.append(facts["compressed_bytes"])
    assert found[1] < found[0]


def test_an_interrupted_training_goes_on_to_the_same_zeros(tmp_path: Path) -> None:
    """After the first weights became zero, and between two choices of them."""
    source, texts = prepare_source(tmp_path / "source"), prepare_texts(tmp_path / "texts")
    options = {"changes": Changes(sparsity=Sparsity(0.5)), "provenance": "same"}
    whole = train(tmp_path / "whole", source, texts, RECIPE, **options)
    state = tmp_path / "state"
    with pytest.raises(Killed):
        train(tmp_path / "b", source, texts, RECIPE, **options, state=state, terminal=Breaking(9))
    assert list(state.iterdir())
    again = train(tmp_path / "b", source, texts, RECIPE, **options, state=state)
    assert again.read_bytes() == whole.read_bytes()
