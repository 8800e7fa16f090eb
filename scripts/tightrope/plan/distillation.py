"""Students of the configuration, and what is asked of their teachers."""

from typing import Any

from tightrope.data import source as data_sources
from tightrope.errors import ConfigError
from tightrope.plan.job_inputs import encoding_libraries
from tightrope.plan.shapes import is_of_images
from tightrope.variants import is_onnx

Document = dict[str, Any]
# splits whose texts no student may see
HELD_OUT = ("calibration", "evaluation")


def check_distillation(config: Document) -> None:
    """A student is trained, and sees the same examples as its teacher."""
    for name, model in config["models"].items():
        if model["distill"] is None:
            continue
        place = f"config: models.{name}.distill"
        if is_onnx(model["checkpoint"]):
            raise ConfigError(f"{place}: the model is an ONNX file and learns nothing; remove it")
        recipe = recipe_of(model)
        if recipe is None:
            raise ConfigError(f"{place}: a student needs a recipe; say train: {{epochs: 3}}")
        if recipe["augmentation"] != "off":
            raise ConfigError(
                f"{place}: the teacher sees the images as they are; remove train.augmentation"
            )
        check_unlabelled(place, model)


def recipe_of(model: Document) -> Document | None:
    """Return the recipe of a model, with float or with quantized values, None if it has none."""
    recipe: Document | None = model["train"] or model["qat"]
    return recipe


def check_unlabelled(place: str, model: Document) -> None:
    """Unlabelled texts are those of a source that is there."""
    source = model["distill"]["unlabelled"]
    if source is None:
        return
    place = f"{place}.unlabelled = {source}"
    if model["task"] == "image-classification":
        raise ConfigError(f"{place}: only texts may be unlabelled yet; remove it")
    try:
        data_sources.local_files(source)
    except ConfigError as error:
        raise ConfigError(f"{place}: {str(error).removeprefix(f'{source}: ')}") from None


def taught_inputs(config: Document, wildcards: Any) -> dict[str, str]:
    """Return the outputs of the teacher that a model learns from, empty without."""
    if config["models"][wildcards.model]["distill"] is None:
        return {}
    return {"teacher": f"artifacts/{wildcards.model}/teacher/outputs.json"}


def teacher_inputs(config: Document, wildcards: Any) -> dict[str, Any]:
    """Return the teacher's checkpoint, the examples of its student, and unlabelled texts.

    Only where there are unlabelled texts, the splits are named in which they must not occur.
    """
    student, folder = config["models"][wildcards.model], f"artifacts/{wildcards.model}/splits"
    distill = student["distill"]
    inputs = {
        "teacher": f"artifacts/{distill['from']}/checkpoint/checkpoint.json",
        "data": f"{folder}/train.json",
    }
    if distill["unlabelled"] is None:
        return inputs
    return inputs | {
        "splits": [f"{folder}/{split}.json" for split in HELD_OUT],
        "tables": data_sources.local_files(distill["unlabelled"]),
    }


def teacher_request(config: Document, wildcards: Any) -> Document:
    """Return what is asked of the teacher of a model: not how its student weighs it."""
    student = config["models"][wildcards.model]
    distill, recipe = student["distill"], recipe_of(student) or {}
    return {
        "teacher": distill["from"],
        "sequence": None if is_of_images(config, wildcards.model) else recipe["sequence"],
        "hidden": distill["hidden"] > 0,
        "unlabelled": distill["unlabelled"],
        "column": student["columns"]["text"],
        "seed": student["seed"],
    }


def teacher_libraries(config: Document, wildcards: Any) -> dict[str, str | None]:
    """Return the versions of what runs a teacher, and of what unlabelled texts come from."""
    source = config["models"][wildcards.model]["distill"]["unlabelled"]
    texts = {} if source is None else data_sources.libraries(source)
    return encoding_libraries(config, ["torch", "transformers"], wildcards) | texts
