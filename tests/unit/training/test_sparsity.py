"""Weights that become zero in the course of a training."""

from pathlib import Path

import pytest
import torch
from breaking import Breaking, Killed
from splits import split_of
from tightrope.inputs.encode import read_split
from tightrope.model.module import load_module
from tightrope.training.step import SparseTraining, kept, share_at
from tiny_training import RECIPE, logits, prepare_source, prepare_texts, train

SPARSE = {**RECIPE, "sparsity": 0.5}


@pytest.mark.parametrize(
    ("count", "first", "second"),
    [
        (0, [1, 1, 1, 1], [1, 1, 1, 1]),
        (2, [1, 0, 1, 0], [1, 1, 1, 1]),
        (5, [0, 0, 0, 0], [1, 1, 1, 0]),
    ],
)
def test_the_smallest_weights_are_zero(count: int, first: list[int], second: list[int]) -> None:
    sizes = torch.tensor([[4.0, 1.0, 3.0, 2.0], [8.0, 7.0, 6.0, 5.0]])
    assert kept(sizes, count).int().tolist() == [first, second]


def test_the_share_grows_and_stays_in_the_last_third() -> None:
    shares = [share_at(step / 30, 0.8) for step in range(31)]
    assert shares == sorted(shares)
    assert (shares[0], shares[20], shares[30]) == (0, 0.8, 0.8)


def test_a_trained_model_is_as_sparse_as_asked_and_knows_the_labels(tmp_path: Path) -> None:
    source, texts = prepare_source(tmp_path / "source"), prepare_texts(tmp_path / "texts")
    student = train(tmp_path / "sparse", source, texts, SPARSE)
    model = load_module(student.parent, torch.float32)
    weights = SparseTraining(model, 0.5, steps=1).weights
    assert len(weights) == 2 * 6 + 1  # with the pooler, without the output layer
    for weight in weights:
        assert (weight == 0).float().mean().item() == pytest.approx(0.5, abs=0.01)
    labels = [example["label"] for example in read_split(split_of(texts, "evaluation"))]
    assert (logits(student, texts).argmax(-1) == labels).mean() > 0.95


def test_an_interrupted_training_goes_on_to_the_same_zeros(tmp_path: Path) -> None:
    """After the first weights became zero, and between two choices of them."""
    source, texts = prepare_source(tmp_path / "source"), prepare_texts(tmp_path / "texts")
    whole = train(tmp_path / "whole", source, texts, SPARSE)
    state = tmp_path / "state"
    with pytest.raises(Killed):
        train(tmp_path / "b", source, texts, SPARSE, state=state, terminal=Breaking(9))
    assert list(state.iterdir())
    again = train(tmp_path / "b", source, texts, SPARSE, state=state)
    assert again.read_bytes() == whole.read_bytes()
