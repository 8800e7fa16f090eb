"""A model that starts from another one has its data, and a checkpoint that is the other's."""

from typing import Any

import pytest
from tightrope.errors import ConfigError
from tightrope.plan.families import with_parents

PARENT = {
    "checkpoint": "scratch:bert",
    "data": "files:texts.csv",
    "max_sequence": 64,
    "splits": {"train": 10},
    "train": {"epochs": 3},
    "activation": "relu",
}


def models(**others: Any) -> Any:
    return with_parents({"models": {"large": PARENT, **others}})["models"]


def test_data_are_inherited_and_recipes_are_not() -> None:
    made = models(small={"from": "large", "prune": {"layers": 2}})
    assert made["large"] == PARENT
    assert made["small"] == {
        **{"checkpoint": "model:large", "from": "large", "prune": {"layers": 2}},
        **{"data": "files:texts.csv", "max_sequence": 64, "splits": {"train": 10}},
    }


def test_what_a_model_says_itself_holds() -> None:
    small = models(small={"from": "large", "max_sequence": 32})["small"]
    assert small["max_sequence"] == 32


def test_a_student_has_the_data_of_its_teacher_unless_it_has_its_own() -> None:
    student = {"checkpoint": "scratch:bert", "distill": {"from": "large"}}
    made = models(student=student, other={**student, "data": "files:b.csv"})
    assert (made["student"]["data"], made["student"]["checkpoint"]) == (
        "files:texts.csv",
        "scratch:bert",
    )
    assert made["other"] == {**student, "data": "files:b.csv"}


def test_a_child_of_one_model_may_learn_from_another() -> None:
    other = {**PARENT, "data": "files:b.csv"}
    small = models(other=other, small={"from": "large", "distill": {"from": "other"}})["small"]
    assert (small["data"], small["checkpoint"]) == ("files:texts.csv", "model:large")


def test_a_grandchild_inherits_through_its_parent_in_any_order() -> None:
    made = models(tiny={"from": "small"}, small={"from": "large", "max_sequence": 32})
    assert (made["tiny"]["checkpoint"], made["tiny"]["max_sequence"]) == ("model:small", 32)
    assert made["tiny"]["data"] == "files:texts.csv"


@pytest.mark.parametrize(
    ("others", "words"),
    [
        (
            {"small": {"from": "larg"}},
            'models.small.from = larg: no model of that name; did you mean "large"?',
        ),
        (
            {"small": {"from": "small"}},
            "models.small.from = small: a model cannot start from itself",
        ),
        (
            {"a": {"from": "b"}, "b": {"from": "a"}},
            "models.b.from = a: a model cannot start from itself (a from b from a)",
        ),
        (
            {"small": {"checkpoint": "scratch:bert", "distill": {"from": "larg"}}},
            'models.small.distill.from = larg: no model of that name; did you mean "large"?',
        ),
        (
            {"a": {"from": "b"}, "b": {"checkpoint": "scratch:bert", "distill": {"from": "a"}}},
            "models.b.distill.from = a: a model cannot start from itself (a from b from a)",
        ),
        (
            {"file": {**PARENT, "checkpoint": "onnx:m.onnx"}, "small": {"from": "file"}},
            "models.small.from = file: that model is an ONNX file; start from its checkpoint",
        ),
        (
            {"small": {"checkpoint": "model:large", "data": "files:a.csv"}},
            "models.small.checkpoint = model:large: write from: large in its place",
        ),
        (
            {"small": {"from": "large", "checkpoint": "scratch:bert"}},
            "models.small.from = large: it starts from that model's checkpoint; remove checkpoint",
        ),
    ],
)
def test_wrong_parents_are_named(others: Any, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        models(**others)
    assert words in str(error.value)


def test_a_configuration_without_models_is_left_to_the_schema() -> None:
    assert with_parents({"devices": ["cpu"]}) == {"devices": ["cpu"]}
    assert with_parents({"models": {"a": 3}}) == {"models": {"a": 3}}
