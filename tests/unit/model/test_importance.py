"""Importance of the neurons and blocks of real encoders and of a ConvNeXt."""

from typing import Any

import pytest
import torch
from pruned_models import model_of, text_batch
from tightrope.model.importance import importance_of, mean_loss, taylor
from tightrope.model.pruning import prune, stages_of
from tightrope.model.structures import largest


def test_importance_is_the_change_of_the_loss_to_first_order() -> None:
    """One example: a neuron or a head that is weakened a little changes the loss by that share."""
    inputs, labels = text_batch()
    batch = {name: tensor[:1] for name, tensor in inputs.items()}, labels[:1]
    for place, size in (("output.dense", 1), ("attention.output.dense", 8)):
        model, share = model_of("bert").double(), 1e-4
        out: Any = stages_of(model)[0][1].get_submodule(place)
        values = taylor(model, [batch], {out: size})[out]
        most = max(range(len(values)), key=values.__getitem__)
        whole = mean_loss(model, [batch])
        with torch.no_grad():
            out.weight[:, most * size : (most + 1) * size] *= 1 - share
        found = abs(mean_loss(model, [batch]) - whole) / share
        assert found == pytest.approx(values[most], rel=0.01)


def test_the_importance_of_several_examples_is_the_mean_of_each() -> None:
    model, (inputs, labels) = model_of("bert").double(), text_batch()
    singles = [
        ({name: tensor[place : place + 1] for name, tensor in inputs.items()}, label[None])
        for place, label in enumerate(labels)
    ]
    out: Any = stages_of(model)[0][1].get_submodule("output.dense")
    each = [taylor(model, [single], {out: 1})[out] for single in singles]
    found = torch.tensor(taylor(model, [text_batch()], {out: 1})[out])
    losses = [mean_loss(model, [single]) for single in singles]
    assert mean_loss(model, [text_batch()]) == pytest.approx(sum(losses) / 3, rel=1e-3)
    logits = model(**singles[0][0]).logits
    assert losses[0] == pytest.approx(torch.nn.functional.cross_entropy(logits, labels[:1]).item())
    torch.testing.assert_close(found, torch.tensor(each).mean(0), rtol=1e-3, atol=0)


def test_a_smaller_model_loses_what_its_layers_and_neurons_are_worth() -> None:
    model = model_of("wide_bert")
    (layers,), found, _ = importance_of(model, [text_batch()], [text_batch()])
    assert list(found) == [64, 128, 160]
    assert found[64] >= found[128] >= found[160] == 0
    whole = mean_loss(model, [text_batch()])
    kept = [largest(one.neurons, 64) for one in layers]
    for part, lost in (
        ({"layers": [1, 2]}, layers[0].block),
        ({"intermediate": 64, "neurons": kept}, found[64]),
    ):
        pruned = model_of("wide_bert")
        prune(pruned, **part)
        added = mean_loss(pruned, [text_batch()]) - whole
        assert lost == pytest.approx(max(found[128], added) if "neurons" in part else added)


def test_blocks_of_a_convnext_are_judged_by_stage() -> None:
    model = model_of("convnext")
    images = torch.randn(3, 3, 32, 32, generator=torch.manual_seed(1))
    batch = {"pixel_values": images}, torch.tensor([0, 1, 1])
    stages, narrowing, fewer_heads = importance_of(model, [batch], [batch])
    assert [len(blocks) for blocks in stages] == [1, 2, 3, 1]
    for blocks, dim in zip(stages, (8, 16, 24, 32), strict=True):
        assert all(len(block.neurons) == 4 * dim for block in blocks)
        assert all(min(block.neurons) >= 0 < max(block.neurons) for block in blocks)
    # those that are alone in their stage stay
    assert stages[0][0].block == stages[3][0].block == 0
    assert len({block.block for block in (*stages[1], *stages[2])}) == 5
    assert fewer_heads is None
    assert list(narrowing) == [16, 32]
    assert narrowing[16] >= narrowing[32] == 0
