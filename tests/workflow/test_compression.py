"""A model that is searched for: what is planned for it, and what a change of it touches."""

import json
from typing import Any

from tiny_project import CONFIG, MODEL, Project

FAST = "fast"
CHECKPOINT = f"artifacts/{FAST}/checkpoint/checkpoint.json"
RECIPE = {**CONFIG["models"][MODEL]["train"], "epochs": 1}
TABLE = f"measure_structures/{MODEL}-onnxruntime-fp32-1x8"


def family(**asked: Any) -> dict[str, Any]:
    search = {"from": MODEL, "compress": {"target": "3x", **asked}, "train": RECIPE}
    return {MODEL: CONFIG["models"][MODEL], FAST: search}


def test_a_search_is_planned_after_its_parent_and_before_its_training(unrun: Project) -> None:
    unrun.configure(models=family())
    planned = unrun.plan(CHECKPOINT)
    baseline = f"build_pytorch/{MODEL}-cpu-fp32"
    assert {TABLE, baseline, f"search_compression/{FAST}", f"train_model/{FAST}"} <= planned
    assert f"choose_structure/{FAST}" not in planned


def test_what_does_not_fit_a_search_is_named(unrun: Project) -> None:
    for changes, words in (
        ({"train": None}, f"models.{FAST}.compress: smaller models need training"),
        ({"prune": {"layers": 1}}, f"models.{FAST}.compress: it chooses what is kept"),
        ({"sparsity": {"share": 0.5}}, f"models.{FAST}.compress: not together with sparsity"),
    ):
        models = family()
        models[FAST] = {**models[FAST], **changes}
        unrun.configure(models=models)
        done = unrun.snakemake("--dry-run")
        assert done.returncode != 0
        assert words in done.stdout


def test_the_model_of_a_search_is_trained_as_it_was_chosen(unrun: Project) -> None:
    unrun.configure(models=family(target="0.001x"))
    ran = unrun.run(CHECKPOINT)
    assert {f"search_compression/{FAST}", f"train_model/{FAST}"} <= ran
    path = json.loads((unrun / f"artifacts/{FAST}/compression.json").read_text())
    assert (path["ended"], path["chosen"]) == ("target met", 1.0)
    manifest = json.loads((unrun / CHECKPOINT).read_text())
    assert manifest["prune"]["target"]["asked"]["speedup"] == 0.001
    assert unrun.plan(CHECKPOINT) == set()
    # a model that asks for more goes on from what was measured
    unrun.configure(models=family(target="0.002x"))
    assert unrun.plan(CHECKPOINT) == {f"search_compression/{FAST}", f"train_model/{FAST}"}
