"""Models that are made from others: what they inherit, and which are timed against each other."""

from typing import Any

import pytest
from tightrope.config.parents import with_parents
from tightrope.errors import ConfigError
from tightrope.plan.families import compared, families, references
from tightrope.variants import parse

PARENT = {
    **{"checkpoint": "scratch:bert", "data": "files:texts.csv", "max_sequence": 64},
    **{"splits": {"train": 10}, "train": {"epochs": 3}, "activation": "relu"},
}
STUDENT = {"checkpoint": "scratch:bert", "distill": {"from": "large"}}


def derived(**others: Any) -> Any:
    return with_parents({"models": {"large": PARENT, **others}})["models"]


def test_a_child_has_the_data_of_its_parent_a_student_of_its_teacher() -> None:
    small = {"from": "large", "prune": {"layers": 2}}
    inherited = {key: PARENT[key] for key in ("data", "max_sequence", "splits")}
    made = derived(small=small, tiny={"from": "small", "max_sequence": 32})
    assert made["large"] == PARENT
    assert made["small"] == {"checkpoint": "model:large", **small, **inherited}
    # through its parent, whatever their order; what it says itself holds
    assert derived(tiny={"from": "small", "max_sequence": 32}, small=small) == made
    assert (made["tiny"]["checkpoint"], made["tiny"]["max_sequence"]) == ("model:small", 32)
    assert made["tiny"]["data"] == PARENT["data"]
    # of its teacher, unless it has its own or a parent
    other = {**PARENT, "data": "files:b.csv"}
    child = {"from": "large", "distill": {"from": "other"}}
    made = derived(
        student=STUDENT, own={**STUDENT, "data": "files:c.csv"}, other=other, child=child
    )
    found = [(made[name]["data"], made[name]["checkpoint"]) for name in ("student", "child")]
    assert found == [(PARENT["data"], "scratch:bert"), (PARENT["data"], "model:large")]
    assert made["own"] == {**STUDENT, "data": "files:c.csv"}


def test_wrong_parents_are_named() -> None:
    for others, words in (
        ({"small": {"from": "larg"}}, 'small.from = larg: no model of that name; did you mean "la'),
        ({"small": {"from": "small"}}, "small.from = small: a model cannot start from itself"),
        ({"a": {"from": "b"}, "b": {"from": "a"}}, "b.from = a: a model cannot start from itself "),
        ({"small": {**STUDENT, "distill": {"from": "larg"}}}, "small.distill.from = larg: no mode"),
        (
            {"a": {"from": "b"}, "b": {**STUDENT, "distill": {"from": "a"}}},
            "b.distill.from = a: a model cannot start from itself (a from b from a)",
        ),
        (
            {"file": {**PARENT, "checkpoint": "onnx:m.onnx"}, "small": {"from": "file"}},
            "small.from = file: that model is an ONNX file; start from its checkpoint",
        ),
        (
            {"small": {"checkpoint": "model:large", "data": "files:a.csv"}},
            "small.checkpoint = model:large: write from: large in its place",
        ),
        ({"small": {"from": "large", "checkpoint": "scratch:bert"}}, "small.from = large: it star"),
    ):
        with pytest.raises(ConfigError) as error:
            derived(**others)
        assert str(error.value).startswith(f"config: models.{words}")
        # what is no configuration of models is left to the schema
        for config in ({"devices": ["cpu"]}, {"models": {"a": 3}}):
            assert with_parents(config) == config


EAGER, INT8 = parse("cpu-pytorch-fp32"), parse("cpu-openvino-int8-nncf-8")
ON_GPU = parse("cuda-pytorch-fp32")
MODELS: dict[str, Any] = {
    **{"small": {"from": "large"}, "tiny": {"distill": {"from": "small"}}},
    **{"large": {"checkpoint": "scratch:bert", "from": None}, "narrow": {"from": "large"}},
    "alone": {"checkpoint": "scratch:bert"},
}
JOBS = [(model, variant) for model in MODELS for variant in (EAGER, INT8)]
MEMBERS = ["large", "small", "tiny", "narrow"]


def test_a_root_is_timed_with_its_descendants_on_each_device_that_several_run_on() -> None:
    for more, on_gpu in (
        ([], None),
        ([("tiny", ON_GPU)], None),
        ([("tiny", ON_GPU), ("large", ON_GPU)], ["large", "tiny"]),
    ):
        found = families({"models": MODELS}, [*JOBS, *more])
        expected = {("large", "cpu"): MEMBERS, ("large", "cuda"): on_gpu}
        assert found == {family: models for family, models in expected.items() if models}
        apart = {"models": {name: MODELS[name] for name in ("large", "alone")}}
        assert families(apart, [job for job in JOBS if job[0] in apart["models"]]) == {}


def alike(**activations: Any) -> dict[str, Any]:
    """Models that differ in their activation alone."""
    recipe = {"epochs": 1, "seed": None}
    same = {"checkpoint": "scratch:a", "seed": 0, "train": recipe}
    return {"models": {name: {**same, "activation": one} for name, one in activations.items()}}


@pytest.mark.parametrize(
    ("activations", "found"),
    [
        # the checkpoint's own activation wherever it is, else the first
        ({"relu": "relu", "plain": None, "silu": "silu"}, {"relu": "plain", "silu": "plain"}),
        ({"silu": "silu", "relu": "relu"}, {"relu": "silu"}),
        ({"relu": "relu"}, {}),
        # the same twice is not compared with itself
        ({"a": None, "b": None, "c": "relu", "d": "relu"}, {"c": "a", "d": "a"}),
    ],
)
def test_models_that_differ_in_their_activation_have_a_reference(activations, found) -> None:
    assert references(alike(**activations)) == found
    # nor those that differ in more, and only variants that both have are timed in pairs
    for key, value in (("checkpoint", "scratch:b"), ("seed", 1), ("train", {"epochs": 2})):
        config = alike(a=None, b="relu", c=None, d="relu")
        for name in ("c", "d"):
            config["models"][name][key] = value
        assert references(config) == {"b": "a", "d": "c"}
    jobs = [("plain", EAGER), ("relu", EAGER), ("relu", INT8)]
    assert compared(alike(plain=None, relu="relu"), jobs) == [("relu", EAGER)]
