"""Students of the configuration, and what is asked of their teachers."""

from typing import Any

from tightrope.data import source as data_sources
from tightrope.errors import ConfigError
from tightrope.plan.families import OF_DATA
from tightrope.plan.hosts import Document
from tightrope.plan.shapes import is_of_images
from tightrope.variants import is_onnx

# splits whose texts no student may see
HELD_OUT = ("calibration", "evaluation")
# of a teacher's outputs: for a student with examples of its own, or with states of tokens
STUDENT, STATES = "student", "-states"
# names of what a teacher is asked for, see `asked_by`
ASKED = f"{STUDENT}|(images|[1-9][0-9]*)({STATES})?"


def check_distillation(config: Document) -> None:
    """A student is trained and sees its teacher's examples; unlabelled texts have a source."""
    for name, model in config["models"].items():
        if model["distill"] is None:
            continue
        place = f"config: models.{name}.distill"
        if is_onnx(model["checkpoint"]):
            raise ConfigError(f"{place}: the model is an ONNX file and learns nothing; remove it")
        recipe = model["train"] or model["qat"]
        if recipe is None:
            raise ConfigError(f"{place}: a student needs a recipe; say train: {{epochs: 3}}")
        if recipe["augmentation"] != "off":
            raise ConfigError(
                f"{place}: the teacher sees the images as they are; remove train.augmentation"
            )
        if (source := model["distill"]["unlabelled"]) is None:
            continue
        place = f"{place}.unlabelled = {source}"
        if model["task"] == "image-classification":
            raise ConfigError(f"{place}: only texts may be unlabelled yet; remove it")
        try:
            data_sources.local_files(source)
        except ConfigError as error:
            raise ConfigError(f"{place}: {str(error).removeprefix(f'{source}: ')}") from None


def taught_inputs(config: Document, name: str) -> dict[str, str]:
    """Return the outputs of the teacher that a model learns from, empty without."""
    models = config["models"]
    distill = models[name]["distill"]
    if distill is None:
        return {}
    teacher = models[distill["from"]]
    alike = all(models[name][key] == teacher[key] for key in OF_DATA)
    if distill["unlabelled"] is None and alike:
        return {"teacher": outputs(distill["from"], asked_by(config, name))}
    return {"teacher": outputs(name, STUDENT)}


def outputs(model: str, asked: str) -> str:
    """Return the manifest of a teacher's outputs for the examples of a model."""
    return f"artifacts/{model}/teacher/{asked}/outputs.json"


def asked_by(config: Document, student: str) -> str:
    """Return the name of what a student asks its teacher for on the teacher's own examples.

    `64-states` are logits and states of tokens of texts cut at 64 tokens; students share it.
    """
    model = config["models"][student]
    recipe = model["train"] or model["qat"] or {}
    what = "images" if is_of_images(config, student) else str(recipe["sequence"])
    return what + (STATES if model["distill"]["hidden"] > 0 else "")


def teacher_inputs(config: Document, model: str, asked: str) -> dict[str, Any]:
    """Return the teacher's checkpoint, the examples, and unlabelled texts.

    Only where there are unlabelled texts, the splits are named in which they must not occur.
    """
    folder, distill = f"artifacts/{model}/splits", own_request(config, model, asked)
    teacher = distill["from"] if distill else model
    inputs = {
        "teacher": f"artifacts/{teacher}/checkpoint/checkpoint.json",
        "data": f"{folder}/train.json",
    }
    if not distill or distill["unlabelled"] is None:
        return inputs
    return inputs | {
        "splits": [f"{folder}/{split}.json" for split in HELD_OUT],
        "tables": data_sources.local_files(distill["unlabelled"]),
    }


def own_request(config: Document, model: str, asked: str) -> Document:
    """Return `distill` of a student with examples of its own, empty for those of its teacher."""
    return dict(config["models"][model]["distill"]) if asked == STUDENT else {}


def teacher_request(config: Document, name: str, asked: str) -> Document:
    """Return what a teacher is asked for: not how its student weighs it."""
    distill = own_request(config, name, asked)
    asked = asked_by(config, name) if distill else asked
    what = asked.removesuffix(STATES)
    model = config["models"][name]
    return {
        "teacher": distill["from"] if distill else name,
        "sequence": int(what) if what.isdecimal() else None,
        "hidden": asked.endswith(STATES),
        "unlabelled": distill.get("unlabelled"),
        "column": model["columns"]["text"],
        "seed": model["seed"],
    }
