"""The device to train a model on, and the trainings to measure."""

from typing import Any

from tightrope.plan.config_checks import uses_gpu
from tightrope.plan.planned_on import planned_on

Document = dict[str, Any]
# keys of a recipe that the measurement of a training sets itself
ITS_OWN = ("epochs", "seed", "validate")


def device_to_train_on(config: Document, model: str) -> str:
    """Return the device that trains the model.

    `auto` is the GPU where variants for it are planned and it is usable here, or a host has it, or
    where only GPU variants are planned, as on the head node of a cluster: without the trained
    weights they would fail too.
    """
    keys = config["models"][model]
    asked = (keys["train"] or keys.get("qat") or {"device": "cpu"})["device"]
    if asked != "auto":
        return asked
    machine = planned_on()
    ready = machine["host"]["gpu"] is not None and machine["packages"]["pytorch"] is None
    elsewhere = bool(config["hosts"]) or config["devices"] == ["cuda"]
    return "cuda" if uses_gpu(config) and (ready or elsewhere) else "cpu"


def measured_trainings(config: Document) -> list[str]:
    """Return the models whose training is measured: not students, whose time is their teacher's."""
    return [
        name
        for name, model in config["models"].items()
        if model["train"] and not model["distill"] and config["training"]["epochs"]
    ]


def recipe_to_measure(config: Document, wildcards: Any) -> Document:
    """Return the recipe without the keys that its measurement sets itself, such as `epochs`.

    A change of these keys thus reruns no measurement.
    """
    recipe = config["models"][wildcards.model]["train"]
    return {key: value for key, value in recipe.items() if key not in ITS_OWN}
