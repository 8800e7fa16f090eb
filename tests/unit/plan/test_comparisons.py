from typing import Any

import pytest
from tightrope.plan.families import compared, references
from tightrope.variants import Variant

EAGER = Variant("cpu", "pytorch", "fp32")
INT8 = Variant("cpu", "onnxruntime", "int8", "minmax-8")


def config(**activations: Any) -> dict[str, Any]:
    """Models that differ in their activation alone."""
    recipe = {"epochs": 1, "seed": None}
    return {
        "models": {
            name: {"checkpoint": "scratch:a", "seed": 0, "activation": one, "train": recipe}
            for name, one in activations.items()
        }
    }


def test_the_reference_is_the_model_with_the_checkpoints_own_activation_wherever_it_is() -> None:
    models = config(relu="relu", plain=None, silu="silu")
    assert references(models) == {"relu": "plain", "silu": "plain"}


def test_without_such_a_model_the_first_is_the_reference() -> None:
    assert references(config(silu="silu", relu="relu")) == {"relu": "silu"}


def test_one_model_alone_has_none() -> None:
    assert references(config(relu="relu")) == {}


def test_the_same_activation_twice_is_not_compared_with_itself() -> None:
    assert references(config(a=None, b=None, c="relu", d="relu")) == {"c": "a", "d": "a"}


@pytest.mark.parametrize(
    ("key", "value"),
    [("checkpoint", "scratch:b"), ("seed", 1), ("train", None), ("train", {"epochs": 2})],
)
def test_models_that_differ_in_more_are_not_compared(key: str, value: Any) -> None:
    models = config(plain=None, relu="relu")
    models["models"]["relu"][key] = value
    assert references(models) == {}


def test_two_families_have_a_reference_each() -> None:
    models = config(a=None, b="relu", c=None, d="relu")
    for name in ("c", "d"):
        models["models"][name]["seed"] = 1
    assert references(models) == {"b": "a", "d": "c"}


def test_only_variants_that_both_have_are_timed_beside_each_other() -> None:
    models = config(plain=None, relu="relu")
    jobs = [("plain", EAGER), ("relu", EAGER), ("relu", INT8)]
    assert compared(models, jobs) == [("relu", EAGER)]
