"""What a checkpoint predicts, from its config.json."""

from collections.abc import Mapping
from typing import Any

# class name suffixes of transformers models with a classification head
CLASSIFIERS = ("ForSequenceClassification", "ForImageClassification")
# those of models with another head, and what they do
OTHER_HEADS = {
    "ForTokenClassification": "classifies each token",
    "ForQuestionAnswering": "answers questions with a span of the text",
    "ForMultipleChoice": "chooses among several texts",
    "ForNextSentencePrediction": "compares two sentences",
    "ForCausalLM": "generates text",
    "LMHeadModel": "generates text",
    "ForConditionalGeneration": "generates text",
    "ForObjectDetection": "finds objects in an image",
    "ForSemanticSegmentation": "classifies each pixel",
    "ForImageSegmentation": "classifies each pixel",
    "ForDepthEstimation": "estimates depths",
    "ForMaskedImageModeling": "fills in parts of an image",
}
SINGLE_LABEL = "single_label_classification"
# values of `problem_type` that are not single-label classification
OTHER_PROBLEMS = {
    "multi_label_classification": "gives an example any number of labels",
    "regression": "predicts a number, not a label",
}


def is_classifier(config: Mapping[str, Any]) -> bool:
    """Return whether the checkpoint was saved with a classification head."""
    return any(name.endswith(CLASSIFIERS) for name in architectures(config))


def architectures(config: Mapping[str, Any]) -> list[str]:
    """Return the names of the classes that the checkpoint was saved from."""
    return [name for name in config.get("architectures") or () if isinstance(name, str)]


def unusable_head(config: Mapping[str, Any]) -> str | None:
    """Return why a model with this config.json cannot be used without training, else None.

    A head for another task is refused by its name. Training replaces any head by a new one.
    """
    name = next(iter(architectures(config)), "")
    for suffix, purpose in OTHER_HEADS.items():
        if name.endswith(suffix):
            return (
                f"{name} {purpose}; only models that give a whole text or image one label are "
                f"supported, saved as …{CLASSIFIERS[0]} or …{CLASSIFIERS[1]}"
            )
    if not is_classifier(config):
        return (
            f"{name or 'the model'} has no classification head; use a checkpoint that was "
            "fine-tuned for classification, or fine-tune it here: train: {epochs: 1}"
        )
    problem = config.get("problem_type")
    if not isinstance(problem, str) and outputs(config) == 1:
        problem = "regression"
    if problem in OTHER_PROBLEMS:
        return (
            f"problem_type {problem}: {name} {OTHER_PROBLEMS[problem]}; only models that give a "
            "whole text or image one label are supported"
        )
    return None


def outputs(config: Mapping[str, Any]) -> int | None:
    """Return the number of outputs of the head, None if config.json does not say it."""
    names = config.get("id2label")
    count = len(names) if isinstance(names, dict) else config.get("num_labels")
    return count if isinstance(count, int) else None
