"""Taylor importance of the units of real encoders and of a ConvNeXt."""

import pytest
import torch
from pruned_models import logits, model_of, text_batch
from tightrope.errors import TightropeError
from tightrope.model.blocks import stages_of
from tightrope.model.importance import importance_of
from transformers import AutoConfig, AutoModelForImageClassification


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta"])
def test_every_neuron_and_attention_of_every_layer_is_judged(kind: str) -> None:
    (layers,) = importance_of(model_of(kind), [text_batch()])
    assert [len(one.neurons) for one in layers] == [32] * 4
    assert all(one.other > 0 and min(one.neurons) >= 0 < max(one.neurons) for one in layers)


def test_importance_is_the_change_of_the_loss_to_first_order() -> None:
    """One example: a neuron that is weakened a little changes the loss by that share of it."""
    model, share = model_of("bert"), 1e-3
    inputs, labels = text_batch()
    batch = {name: tensor[:1] for name, tensor in inputs.items()}, labels[:1]
    (layers,) = importance_of(model, [batch])

    def of_one() -> torch.Tensor:
        with torch.inference_mode():
            answer = model(**batch[0]).logits.double()
        return torch.nn.functional.cross_entropy(answer, batch[1])

    whole, out = of_one(), stages_of(model)[0][2].output.dense
    neuron = max(range(32), key=lambda index: layers[2].neurons[index])
    with torch.no_grad():
        out.weight[:, neuron] *= 1 - share
    expected = layers[2].neurons[neuron]
    assert float(abs(of_one() - whole)) / share == pytest.approx(expected, rel=0.05)


def test_neurons_that_do_nothing_have_no_importance() -> None:
    model = model_of("bert")
    idle = list(range(0, 32, 4))
    for layer in stages_of(model)[0]:
        with torch.no_grad():
            layer.output.dense.weight[:, idle] = 0
    (layers,) = importance_of(model, [text_batch()])
    for one in layers:
        assert [index for index, value in enumerate(one.neurons) if value == 0] == idle


def test_judging_changes_nothing_of_the_model() -> None:
    model = model_of("bert")
    before = logits(model)
    importance_of(model, [text_batch()])
    torch.testing.assert_close(logits(model), before)
    assert all(weight.grad is None for weight in model.parameters())


def test_blocks_of_a_convnext_are_judged_by_stage() -> None:
    model = model_of("convnext")
    images = torch.randn(3, 3, 32, 32, generator=torch.manual_seed(1))
    stages = importance_of(model, [({"pixel_values": images}, torch.tensor([0, 1, 1]))])
    assert [len(blocks) for blocks in stages] == [1, 2, 3, 1]
    assert all(block.other > 0 and block.neurons == [] for blocks in stages for block in blocks)


def test_a_model_of_another_form_is_named() -> None:
    config = AutoConfig.for_model("resnet", hidden_sizes=[8, 8], depths=[1, 1], embedding_size=8)
    model = AutoModelForImageClassification.from_config(config)
    with pytest.raises(TightropeError, match=r"prune: ResNetModel has no encoder\.layer or .*yet"):
        importance_of(model, [])
