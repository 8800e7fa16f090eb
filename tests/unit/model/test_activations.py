"""Activations by name, and those of a real model replaced, kept with its weights."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from pruned_models import SIZES, model_of
from tightrope.errors import TightropeError
from tightrope.model.activations import (
    FastSwish,
    make_activation,
    replace_activations,
    restore_activation,
    swap_activation,
)
from torch import nn
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    ResNetConfig,
    ResNetForImageClassification,
)
from transformers.activations import ACT2FN


def make_bert(**fields: object) -> Any:
    config = BertConfig(**{**SIZES["bert"], "num_hidden_layers": 2, **fields})
    return BertForSequenceClassification(config).eval()


def make_resnet() -> Any:
    sizes = {"embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 2]}
    return ResNetForImageClassification(ResNetConfig(layer_type="basic", **sizes))


def count(model: nn.Module, *kinds: type) -> int:
    return sum(isinstance(module, kinds) for module in model.modules())


HIDDEN = tuple(type(ACT2FN[name]) for name in ("gelu", "relu"))


def test_each_name_is_the_function_of_that_name_and_others_are_errors() -> None:
    at_one = {"gelu": 0.84134, "gelu_tanh": 0.84119, "hardswish": 2 / 3, "relu": 1, "silu": 0.73106}
    found = {name: make_activation(name)(torch.ones(())).item() for name in at_one}
    assert found == pytest.approx(at_one, abs=1e-5)
    with pytest.raises(TightropeError, match=r"activation swoosh: unknown; there are gelu, .*relu"):
        replace_activations(make_bert(), "swoosh")
    flat = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Softmax(-1))
    with pytest.raises(TightropeError, match="Sequential: has no activation that can be replaced"):
        replace_activations(flat, "relu")


@pytest.mark.parametrize(
    ("kind", "places"),
    # of a ResNet that of the stem, and two of each of three blocks
    [("bert", 4), ("distilbert", 4), ("convnext", 7), ("resnet", 7)],
)
def test_every_activation_of_a_model_is_replaced(kind: str, places: int) -> None:
    model = make_resnet() if kind == "resnet" else model_of(kind)
    assert count(model, *HIDDEN)
    assert replace_activations(model, "fast_swish") == places
    assert (count(model, *HIDDEN), count(model, FastSwish)) == (0, places)
    # and again by another
    assert replace_activations(model, "silu") == places
    assert count(model, FastSwish) == 0


def test_each_hidden_activation_of_transformers_is_one_and_the_tanh_of_the_pooler_stays() -> None:
    for name in set(ACT2FN) - {"linear", "sigmoid", "tanh", "xielu"}:
        model = make_bert(hidden_act=name)
        assert replace_activations(model, "relu") == 2, name
        assert (count(model, nn.ReLU), count(model, nn.Tanh)) == (2, 1)


@pytest.mark.parametrize("function", [nn.functional.gelu, torch.relu])
def test_plain_functions_that_a_model_holds_are_replaced(function: Callable[..., Any]) -> None:
    model = make_bert()
    for layer in model.bert.encoder.layer:
        del layer.intermediate.intermediate_act_fn
        layer.intermediate.intermediate_act_fn = function
    assert replace_activations(model, "fast_swish") == count(model, FastSwish) == 2


def test_the_name_is_kept_beside_the_weights_and_put_back(tmp_path: Path) -> None:
    model = make_bert(initializer_range=0.5)  # another activation gives other logits
    swap_activation(model, "fast_swish")
    model.save_pretrained(tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    ids = torch.arange(1, 9)[None]
    assert (loaded(input_ids=ids).logits - model(input_ids=ids).logits).abs().max() > 0.01
    restore_activation(loaded)
    # weights that lie elsewhere in memory may go through another kernel
    torch.testing.assert_close(loaded(input_ids=ids).logits, model(input_ids=ids).logits)
    whole = make_bert()  # which was not swapped
    restore_activation(whole)
    assert count(whole, type(ACT2FN["gelu"])) == 2
