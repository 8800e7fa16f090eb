from typing import Any

import pytest
from snakemake.iocontainers import Wildcards
from tightrope.machine.host import describe_host
from tightrope.plan.studies import device_to_train_on, measured_trainings, recipe_to_measure


def config(device: str = "auto", devices: Any = "auto", epochs: int = 2) -> dict[str, Any]:
    recipe = {"epochs": 9, "seed": 4, "validate": True, "device": device, "batch": 8}
    models = {
        "trained": {"train": recipe, "distill": None},
        "taken": {"train": None, "distill": None},
        "student": {"train": recipe, "distill": {"from": "trained"}},
    }
    where = {"host": "auto", "hosts": {}, "devices": devices}
    return {**where, "training": {"epochs": epochs, "seeds": [0]}, "models": models}


def test_auto_trains_where_the_variants_are() -> None:
    assert device_to_train_on(config(devices=["cpu"]), "trained") == "cpu"
    assert device_to_train_on(config(devices=["cuda"]), "trained") == "cuda"
    assert device_to_train_on(config("cpu", devices=["cuda"]), "trained") == "cpu"
    assert device_to_train_on(config("cuda", devices=["cpu"]), "trained") == "cuda"
    assert device_to_train_on(config(devices=["cuda"]), "taken") == "cpu"


@pytest.mark.skipif(describe_host()["gpu"] is not None, reason="there is a GPU")
def test_auto_trains_on_the_cpu_of_a_machine_without_a_gpu() -> None:
    assert device_to_train_on(config(), "trained") == "cpu"


def test_models_with_a_recipe_are_measured_but_no_students_where_epochs_are_asked_for() -> None:
    assert measured_trainings(config()) == ["trained"]
    assert measured_trainings(config(epochs=0)) == []


def test_what_the_measurement_says_itself_is_no_part_of_the_recipe_it_follows() -> None:
    trained = Wildcards(fromdict={"model": "trained"})
    assert recipe_to_measure(config(), trained) == {"device": "auto", "batch": 8}
