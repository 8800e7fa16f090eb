"""What a checkpoint's config.json says: its activation, token limit, head and outputs."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

from msgspec import Meta

from tightrope.artifacts.files import read_json
from tightrope.errors import TightropeError

# Model types that reserve the positions up to and including the padding id.
OFFSETS = ("roberta", "camembert", "mpnet", "data2vec-text")

# Tightrope's own field: transformers' hidden_act does not accept all of our activations
FIELD = "tightrope_activation"
# -1 stands for none; no model has more tokens or outputs
Number = Annotated[int, Meta(ge=-1, le=2**31)]
FIELDS = (FIELD, "hidden_act", "activation", "activation_function")
# class name suffixes of transformers models with a classification head
CLASSIFIERS = ("ForSequenceClassification", "ForImageClassification")
BY_NAME = "outputs and labels are matched by name"
# those of models with another head, and what they do
OTHER_HEADS = {
    "ForTokenClassification": "classifies each token",
    "ForQuestionAnswering": "answers questions with a span of the text",
    "ForMultipleChoice": "chooses among several texts",
    "ForNextSentencePrediction": "compares two sentences",
    "ForCausalLM": "generates text",
    "LMHeadModel": "generates text",
    "ForConditionalGeneration": "generates text",
    "ForImageClassificationWithTeacher": "has two heads, whose mean is its answer",
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


PADDING_COUNTS = (
    "not supported yet: its logits depend on the padding behind a text, though it is masked, so "
    "texts of several lengths cannot be in one batch (a decoder finds its last token by the "
    "padding, MobileBERT's embeddings read the next token, some ONNX files do not use their mask)"
)


class ConfigJson(TypedDict, total=False):
    """The fields of a checkpoint's config.json that this project reads itself."""

    model_type: str | None
    architectures: list[str] | None
    auto_map: dict[str, Any] | None
    id2label: dict[str, str | int] | None
    label2id: dict[str, Any] | None
    num_labels: Number | None
    num_channels: Number | None
    problem_type: str | None
    max_position_embeddings: Number | None
    n_positions: Number | None
    pad_token_id: Number | None
    quantization_config: dict[str, Any] | None
    compression_config: dict[str, Any] | None


def activation_of(config: Path | str) -> str | None:
    """Return the activation in config.json; None if the file is missing or names none."""
    if not Path(config).is_file():
        return None
    document = read_json(config, dict[str, Any])
    names = (document.get(field) for field in FIELDS)
    return next((name for name in names if isinstance(name, str)), None)


def positions(config: dict[str, Any]) -> int | None:
    """Return the maximum number of tokens in this config.json; None if it sets no limit."""
    limit = config.get("max_position_embeddings") or config.get("n_positions")
    if not isinstance(limit, int) or limit < 1:
        return None
    reserved = (config.get("model_type") or "").removeprefix("xlm-") in OFFSETS
    return limit - (config.get("pad_token_id") or 0) - 1 if reserved else limit


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
    if "pretrained_cfg" in config and not config.get("model_type"):
        return (
            "config.json has no model_type, so it is one of timm, none of transformers; "
            "export the model to ONNX and give checkpoint: onnx:FILE"
        )
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


def require_names(source: str, names: Sequence[str], outputs: int) -> None:
    """Raise TightropeError unless `names`, the key `labels`, name that many outputs, each once."""
    twice = [name for number, name in enumerate(names) if name in names[:number]]
    if twice:
        raise TightropeError(f"{source}: labels: {twice[0]!r} is listed twice; list each name once")
    if len(names) != outputs:
        raise TightropeError(
            f"{source}: has {outputs} outputs, labels lists {len(names)} names; list one name for "
            "each output, in the order of the outputs"
        )


def output_names(source: str, config: Mapping[str, Any], count: int) -> list[str]:
    """Return the names of so many outputs in id2label, else in label2id of config.json.

    LABEL_0 is no name. Raises TightropeError where they are not numbered from 0.
    """
    unnamed = {str(number): f"LABEL_{number}" for number in range(count)}
    first = {number: str(name) for number, name in (config.get("id2label") or unnamed).items()}
    other = {str(number): name for name, number in (config.get("label2id") or {}).items()}
    if other.keys() != unnamed.keys():
        other = unnamed  # of another model
    found = next((one for one in (first, other) if not one.items() <= unnamed.items()), unnamed)
    if found.keys() != unnamed.keys():
        why = f"id2label of config.json does not name outputs 0 to {count - 1}"
        raise TightropeError(f"{source}: {why}; correct it, or list names in the key `labels`")
    return [found[number] for number in unnamed]


def require_same_places(source: str, names: Sequence[str], labels: Sequence[str]) -> None:
    """Raise TightropeError where a label, no number, is the name of an output in another place."""
    own = list(map(plain, names))
    for place, label in enumerate(labels):
        if plain(label) in own[:place] + own[place + 1 :] and not label.isdigit():
            why = f"its output {own.index(plain(label))} is {label!r}, label {place} of the data"
            raise TightropeError(f"{source}: {why}; list its names in the key `labels`")


def plain(name: str) -> str:
    """Return the name without what writers change: case, Unicode form, and spaces for _ and -."""
    name = unicodedata.normalize("NFKC", name).casefold().strip()
    return re.sub(r"(?<=\w)[\s_-]+(?=\w)", " ", name)


def order_by_name(names: Sequence[str], labels: Sequence[str]) -> list[int] | None:
    """Return for each label the index of the output of that name, None where they differ.

    A label may be the beginning of a name, as neg of negative.
    """
    own, order = list(map(plain, names)), []
    for label in map(plain, labels):
        # 1 begins 1 star, and not 10 stars
        begins = [name for name in own if re.match(f"{re.escape(label)}(?!\\d)", name)]
        found = [label] if label in own else begins
        order += [own.index(name) for name in found if found == [name]]
    return order if sorted(order) == list(range(len(labels))) else None


def matching(names: Sequence[str], labels: Sequence[str] | None) -> str | None:
    """Return how outputs of these names are matched with the labels of the data, for the reader."""
    if labels is None or len(names) != len(labels):
        return None
    if order_by_name(names, labels) is not None:
        return BY_NAME
    pairs = [f"{name} = {label}" for name, label in zip(names, labels, strict=True)]
    more = ", ..." if pairs[3:] else ""
    return f"outputs and labels are matched by order: {', '.join(pairs[:3])}{more}"


def output_order(source: str, names: Sequence[str], labels: Sequence[str]) -> list[int]:
    """Return the index of the output of each label; raise TightropeError for other names."""
    missing = [label for label in labels if label not in names]
    unknown = [name for name in names if name not in labels]
    if missing or unknown:
        reasons = [
            f"{words} {', '.join(map(repr, wrong[:5]))}{', ...' if len(wrong) > 5 else ''}"
            for words, wrong in (("lacks", missing), ("has", unknown))
            if wrong
        ]
        raise TightropeError(
            f"{source}: labels {' and '.join(reasons)}, unlike the labels of the data; use the "
            "names of the data"
        )
    return [list(names).index(label) for label in labels]
