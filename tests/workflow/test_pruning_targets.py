"""A model that is pruned to a target: what is measured, chosen and trained for it."""

import json
from typing import Any

import pytest
from tiny_project import CONFIG, MODEL, Project

SMALL = "small"
CHECKPOINT = f"artifacts/{SMALL}/checkpoint/checkpoint.json"
RECIPE = {**CONFIG["models"][MODEL]["train"], "epochs": 1}
CHOSEN = {f"choose_structure/{SMALL}", f"train_model/{SMALL}"}
TABLE = f"measure_structures/{MODEL}-onnxruntime-fp32-1x8"


def family(**pruned: dict[str, Any]) -> dict[str, Any]:
    """The tiny model, and those that start from it, by what is kept of them."""
    children = {name: {"from": MODEL, "prune": kept} for name, kept in pruned.items()}
    trained = {name: {**child, "train": RECIPE} for name, child in children.items()}
    return {MODEL: CONFIG["models"][MODEL], **trained}


def test_a_speed_up_plans_a_table_of_the_parent_and_a_choice(unrun: Project) -> None:
    unrun.configure(models=family(small={"target": "2x"}))
    planned = unrun.plan(CHECKPOINT)
    assert {TABLE, *CHOSEN} <= planned
    unrun.configure(models=family(small={"layers": 1}))
    assert planned - unrun.plan(CHECKPOINT) == {
        TABLE,
        f"choose_structure/{SMALL}",
        f"split_data/{MODEL}-timing",
    }


def test_two_targets_of_a_parent_share_its_table(unrun: Project) -> None:
    at = {"batch": 1, "sequence": 16}
    unrun.configure(
        models=family(
            small={"target": "2x"}, less={"target": "3x"}, other={"target": "2x", "at": at}
        )
    )
    targets = [f"artifacts/{name}/structure.json" for name in ("small", "less", "other")]
    measured = {job for job in unrun.plan(*targets) if job.startswith("measure_structures/")}
    assert measured == {TABLE, f"measure_structures/{MODEL}-onnxruntime-fp32-1x16"}


@pytest.fixture
def pruned(project: Project) -> Project:
    """After a run in which a model was pruned to a number of parameters and trained on."""
    # of 26,000 with two layers
    project.configure(models=family(small={"parameters": 20_000}))
    assert project.run(CHECKPOINT) >= CHOSEN
    return project


def test_a_number_of_parameters_is_kept_to_and_changed_alone(pruned: Project) -> None:
    manifest = json.loads((pruned / CHECKPOINT).read_text())
    target = manifest["prune"]["target"]
    assert manifest["parameters"] == target["reached"]["parameters"]
    assert manifest["parameters"] <= target["asked"]["parameters"]
    (layer,) = manifest["prune"]["layers"]
    assert layer in (0, 1)
    config = json.loads((pruned / f"artifacts/{SMALL}/checkpoint/config.json").read_text())
    assert config["num_hidden_layers"] == 1
    assert pruned.plan(CHECKPOINT) == set()
    pruned.configure(models=family(small={"parameters": 100}))
    assert pruned.plan(CHECKPOINT) == CHOSEN
    assert pruned.run(CHECKPOINT) == CHOSEN
    assert "{'parameters': 100} was asked" in pruned.log(f"choose_structure/{SMALL}")
    assert json.loads((pruned / CHECKPOINT).read_text())["prune"]["target"]["short_by"] > 10
