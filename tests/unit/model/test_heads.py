import pytest
from tightrope.model.heads import unusable_head
from transformers import BertConfig

ONLY = "only models that give a whole text or image one label are supported"


def config(architecture: str, **fields: object) -> dict:
    """A config.json as transformers writes it."""
    return BertConfig(architectures=[architecture], **fields).to_dict()


@pytest.mark.parametrize("labels", [2, 5])
@pytest.mark.parametrize("problem", [None, "single_label_classification"])
def test_a_single_label_classifier_is_usable(labels: int, problem: str | None) -> None:
    fields = {"num_labels": labels, "problem_type": problem}
    assert unusable_head(config("BertForSequenceClassification", **fields)) is None


@pytest.mark.parametrize(
    ("architecture", "purpose"),
    [
        ("BertForTokenClassification", "classifies each token"),
        ("BertForQuestionAnswering", "answers questions with a span of the text"),
        ("GPT2LMHeadModel", "generates text"),
        ("SegformerForSemanticSegmentation", "classifies each pixel"),
    ],
)
def test_a_head_for_another_task_is_named_and_no_recipe_is_offered(
    architecture: str, purpose: str
) -> None:
    reason = unusable_head(config(architecture))
    assert reason.startswith(f"{architecture} {purpose}; {ONLY}")
    assert "train" not in reason
    assert "\n" not in reason


@pytest.mark.parametrize("architecture", ["BertModel", "BertForMaskedLM"])
def test_an_encoder_without_a_head_may_be_fine_tuned(architecture: str) -> None:
    reason = unusable_head(config(architecture))
    assert reason.startswith(f"{architecture} has no classification head")
    assert "train: {epochs: 1}" in reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"problem_type": "multi_label_classification", "num_labels": 4},
            "problem_type multi_label_classification: BertForSequenceClassification gives an "
            "example any number of labels",
        ),
        (
            {"problem_type": "regression", "num_labels": 1},
            "problem_type regression: BertForSequenceClassification predicts a number",
        ),
        ({"num_labels": 1}, "problem_type regression: BertForSequenceClassification predicts a"),
    ],
)
def test_multi_label_and_regression_heads_are_refused(fields: dict, reason: str) -> None:
    found = unusable_head(config("BertForSequenceClassification", **fields))
    assert found.startswith(reason)
    assert ONLY in found


@pytest.mark.parametrize("fields", [{}, {"architectures": [3]}, {"architectures": None}])
def test_a_config_without_architectures_has_no_head(fields: dict) -> None:
    assert unusable_head(fields).startswith("the model has no classification head")
