"""What of a configuration decides where a model is trained, and which trainings are measured."""

from typing import Any

from tightrope.machine.gpu import missing_packages
from tightrope.machine.host import describe_host
from tightrope.plan.config_checks import uses_gpu

Document = dict[str, Any]
# of a recipe, what the measurement of a training says itself
ITS_OWN = ("epochs", "seed", "validate")


def device_to_train_on(config: Document, model: str) -> str:
    """The device that trains that model.

    `auto` is the GPU where variants for one are planned and it is there, or where there are only
    such variants, as on the head node of a cluster: without the weights the others would fail too.
    """
    asked = (config["models"][model]["train"] or {"device": "cpu"})["device"]
    if asked != "auto":
        return asked
    ready = describe_host()["gpu"] is not None and missing_packages("pytorch") is None
    return "cuda" if uses_gpu(config) and (ready or config["devices"] == ["cuda"]) else "cpu"


def measured_trainings(config: Document) -> list[str]:
    """The models whose training is measured."""
    models = config["models"].items()
    return [name for name, model in models if model["train"] and config["training"]["epochs"]]


def recipe_to_measure(config: Document, wildcards: Any) -> Document:
    """What of the model's recipe its measurement follows: another number of epochs changes none."""
    recipe = config["models"][wildcards.model]["train"]
    return {key: value for key, value in recipe.items() if key not in ITS_OWN}
