"""What config.json says of a head, and names of outputs against the labels of the data."""

import pytest
from tightrope.errors import TightropeError
from tightrope.model.config import (
    order_by_name,
    output_names,
    output_order,
    require_names,
    unusable_head,
)
from transformers import BertConfig

CLASSIFIER = "BertForSequenceClassification"
OF_MANY = "multi_label_classification"
MANY = {"problem_type": OF_MANY, "num_labels": 4}


@pytest.mark.parametrize(
    ("architecture", "fields", "reason"),
    [
        (CLASSIFIER, {"num_labels": 5, "problem_type": "single_label_classification"}, None),
        ("BertForTokenClassification", {}, "BertForTokenClassification classifies each token; "),
        ("GPT2LMHeadModel", {}, "GPT2LMHeadModel generates text; "),
        (CLASSIFIER, MANY, f"problem_type {OF_MANY}: {CLASSIFIER} gives an example any"),
        (CLASSIFIER, {"num_labels": 1}, f"problem_type regression: {CLASSIFIER} predicts a number"),
    ],
)
def test_other_heads_are_named(architecture: str, fields: dict, reason: str | None) -> None:
    found = unusable_head(BertConfig(architectures=[architecture], **fields).to_dict())
    if reason is None:
        assert found is None
    else:
        assert found.startswith(reason)
        assert "only models that give a whole text or image one label are supported" in found
        assert "train" not in found and "\n" not in found


def test_two_heads_and_models_of_timm_are_named() -> None:
    distilled = unusable_head(
        {"model_type": "deit", "architectures": ["DeiTForImageClassificationWithTeacher"]}
    )
    assert "has two heads, whose mean is its answer" in distilled
    timm = unusable_head({"architecture": "resnet18", "num_classes": 5, "pretrained_cfg": {}})
    assert "one of timm, none of transformers; export the model to ONNX" in timm


@pytest.mark.parametrize("names", [["BertModel"], ["BertForMaskedLM"], [], [3], None])
def test_an_encoder_without_a_head_may_be_fine_tuned(names: list | None) -> None:
    name = names[0] if names and names != [3] else "the model"
    reason = unusable_head({"architectures": names})
    assert reason.startswith(f"{name} has no classification head")
    assert "train: {epochs: 1}" in reason


@pytest.mark.parametrize(
    ("names", "labels", "order"),
    [
        (["POSITIVE", "NEGATIVE"], ["neg", "pos"], [1, 0]),
        (["very_good", "bad "], ["bad", "very good"], [1, 0]),
        (["re\u0301ussi", "bad"], ["bad", "r\u00e9ussi"], [1, 0]),
        (["2 stars", "1 star", "10 stars"], ["1", "2", "10"], [1, 0, 2]),
        (["-1", "1"], ["1", "-1"], [1, 0]),
        (["joy", "anger"], ["anger", "happy"], None),
    ],
)
def test_names_of_outputs_and_labels_are_the_same_in_other_writing(names, labels, order) -> None:
    assert order_by_name(names, labels) == order


@pytest.mark.parametrize(
    ("check", "names", "of", "reason"),
    [
        (output_order, "a", "ab", "labels lacks 'b', unlike"),
        (output_order, "abc", "ab", "labels has 'c', unlike"),
        (output_order, "", "0123456", r"labels lacks '0', '1', '2', '3', '4', \.\.\., unlike"),
        (require_names, "aba", 3, "labels: 'a' is listed twice"),
    ],
)
def test_names_that_are_not_those_of_the_outputs_or_the_data_are_listed(check, names, of, reason):
    with pytest.raises(TightropeError, match=f"^onnx:m: {reason}"):
        check("onnx:m", list(names), of)


def test_names_of_outputs_are_those_of_id2label_or_else_of_label2id() -> None:
    unnamed = {"0": "LABEL_0", "1": "LABEL_1"}
    for config, names in (
        ({"id2label": {"1": "b", "0": "a"}}, ["a", "b"]),
        ({"id2label": unnamed, "label2id": {"a": 0, "b": 1}}, ["a", "b"]),
        # of a model with other outputs
        ({"id2label": unnamed, "label2id": {"a": 0, "b": 1, "c": 2}}, ["LABEL_0", "LABEL_1"]),
        ({}, ["LABEL_0", "LABEL_1"]),
    ):
        assert output_names("path:mine", config, 2) == names
