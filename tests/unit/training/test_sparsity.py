"""Weights that become zero in the course of a training."""

from pathlib import Path

import pytest
import torch
from breaking import Breaking, Killed
from tightrope.model.module import load_module
from tightrope.training.step import SparseTraining, kept, share_at
from tiny_training import RECIPE, accuracy, train

SPARSE = {**RECIPE, "sparsity": 0.5}


def test_the_smallest_weights_are_zero() -> None:
    sizes = torch.tensor([[4.0, 1.0, 3.0, 2.0], [8.0, 7.0, 6.0, 5.0]])
    assert kept(sizes, 0).all()
    assert kept(sizes, 2).int().tolist() == [[1, 0, 1, 0], [1, 1, 1, 1]]
    assert kept(sizes, 5).int().tolist() == [[0, 0, 0, 0], [1, 1, 1, 0]]


def test_the_share_grows_and_stays_in_the_last_third() -> None:
    shares = [share_at(step / 30, 0.8) for step in range(31)]
    assert shares == sorted(shares)
    assert (shares[0], shares[20], shares[30]) == (0, 0.8, 0.8)


def test_a_trained_model_is_as_sparse_as_asked_and_knows_the_labels(
    source: Path, texts: Path, tmp_path: Path
) -> None:
    """Also where it was interrupted, after the first choice of the weights that are zero."""
    whole = train(tmp_path / "whole", source, texts, SPARSE)
    model = load_module(whole.parent, torch.float32)
    weights = SparseTraining(model, 0.5, steps=1).weights
    assert len(weights) == 2 * 6 + 1  # with the pooler, without the output layer
    for weight in weights:
        assert (weight == 0).float().mean().item() == pytest.approx(0.5, abs=0.01)
    assert accuracy(whole, texts) > 0.95
    state = tmp_path / "state"
    with pytest.raises(Killed):
        train(tmp_path / "again", source, texts, SPARSE, state=state, terminal=Breaking(9))
    assert list(state.iterdir())
    again = train(tmp_path / "again", source, texts, SPARSE, state=state)
    assert again.read_bytes() == whole.read_bytes()
