"""A model from another one in the DAG: it is trained on from the other's weights."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tiny_project import CONFIG, MODEL, Project

SMALL = "small"
CHECKPOINT = f"artifacts/{SMALL}/checkpoint/checkpoint.json"
RECIPE = {**CONFIG["models"][MODEL]["train"], "epochs": 1}
CHILD: dict[str, Any] = {"from": MODEL, "prune": {"layers": 1, "intermediate": 32}, "train": RECIPE}
OWN = {
    *(f"{step}/{SMALL}" for step in ("prepare_data", "prepare_checkpoint", "train_model")),
    f"split_data/{SMALL}-train",
}


def family(**changes: Any) -> dict[str, Any]:
    return {MODEL: CONFIG["models"][MODEL], SMALL: {**CHILD, **changes}}


@pytest.fixture(scope="module")
def pruned(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project after a run in which a model was pruned and trained on."""
    project = finished.copy(tmp_path_factory.mktemp("derived") / "project")
    project.configure(models=family())
    assert project.run(CHECKPOINT) == OWN
    return project


@pytest.fixture
def project(pruned: Project, copied: Callable[[Project], Project]) -> Project:
    return copied(pruned)


def test_the_child_is_smaller_and_has_the_answers_of_its_parent(pruned: Project) -> None:
    manifest = json.loads((pruned / CHECKPOINT).read_text())
    parent = json.loads((pruned / f"artifacts/{MODEL}/checkpoint/checkpoint.json").read_text())
    assert (manifest["source"], manifest["labels"]) == (f"model:{MODEL}", parent["labels"])
    assert manifest["prune"] == CHILD["prune"]
    assert manifest["parameters"] < parent["parameters"]
    config = json.loads((pruned / f"artifacts/{SMALL}/checkpoint/config.json").read_text())
    assert (config["num_hidden_layers"], config["intermediate_size"]) == (1, 32)
    # it goes on where the parent ended: far below the loss of chance, 0.69
    assert manifest["training"]["losses"][-1] < 0.3


def test_nothing_of_the_parent_is_planned_after_a_change_of_the_child(project: Project) -> None:
    project.configure(models=family(prune={"layers": 1, "intermediate": 48}))
    assert project.plan(CHECKPOINT) == {f"train_model/{SMALL}"}


def test_a_changed_child_is_measured_again_with_its_family_and_nothing_else_of_its_parent(
    project: Project,
) -> None:
    project.configure(models=family(prune={"layers": 1, "intermediate": 48}))
    planned = project.plan()
    of_parent = {job for job in planned if SMALL not in job and not job.startswith("render_")}
    assert of_parent == {f"race_family/{MODEL}-cpu", "summarize/summarize"}
    assert f"race_finalists/{SMALL}-cpu" in planned


def test_the_report_compares_the_child_with_its_parent_in_shared_rounds(project: Project) -> None:
    project.configure(models=family(), engines={"openvino": ["fp32"]}, graphs=[])
    assert f"race_family/{MODEL}-cpu" in project.run()
    (found,) = json.loads((project / "reports/summary.json").read_text())["families"]
    assert (found["root"], found["status"], found["reason"]) == (MODEL, "ok", None)
    assert [(one["model"], one["parent"]) for one in found["members"]] == [
        (MODEL, None),
        (SMALL, MODEL),
    ]
    for shape in found["shapes"]:
        (child,) = [one for one in shape["engines"] if one["model"] == SMALL]
        assert child["role"] == "recommended"
        against = child["against"]["root_baseline"]
        assert (against["model"], against["variant"]) == (MODEL, "cpu-pytorch-fp32")
        assert against["speedup"]["low"] < against["speedup"]["ratio"]
        # the same examples, which the child inherits
        assert against["accuracy"]["reason"] is None
        assert len(shape["points"]) == 4
    assert "Smaller models" in (project / "reports/summary.html").read_text()


def test_without_a_derived_model_no_family_is_planned(project: Project) -> None:
    project.configure()
    assert not [job for job in project.plan() if job.startswith("race_family")]


def test_another_recipe_of_the_parent_trains_the_child_again(project: Project) -> None:
    models = family()
    models[MODEL] = {**models[MODEL], "train": {**RECIPE, "epochs": 2}}
    project.configure(models=models)
    planned = project.plan(CHECKPOINT)
    assert planned == {
        f"train_model/{MODEL}",
        f"prepare_checkpoint/{SMALL}",
        f"train_model/{SMALL}",
    }


def test_a_parent_that_is_not_there_is_named(project: Project) -> None:
    project.configure(models=family(**{"from": "tinny"}))
    done = project.snakemake("--dry-run")
    assert done.returncode != 0
    assert f'models.{SMALL}.from = tinny: no model of that name; did you mean "{MODEL}"?' in (
        done.stdout
    )


def test_layers_that_are_not_there_end_the_training_with_a_line(project: Project) -> None:
    project.configure(models=family(prune={"layers": 3}))
    done = project.snakemake(CHECKPOINT)
    assert done.returncode != 0
    assert "prune.layers = 3: BertForSequenceClassification has layers 0 to 1" in done.stdout


def test_a_student_learns_from_its_parent_whose_outputs_are_kept(project: Project) -> None:
    distill = {"from": MODEL, "hidden": 0.5}
    project.configure(models=family(distill=distill))
    assert project.run(CHECKPOINT) == {f"run_teacher/{MODEL}-16-states", f"train_model/{SMALL}"}
    manifest = json.loads((project / CHECKPOINT).read_text())
    assert manifest["distill"]["temperature"] == 2.0
    # the weights of the loss are the student's alone
    project.configure(models=family(distill={**distill, "temperature": 4.0}))
    assert project.plan(CHECKPOINT) == {f"train_model/{SMALL}"}
