"""Models that differ in their activation: timed beside each other, and what is stale then."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from artifact_files import without_digests
from tightrope.summary.document import read_summary
from tiny_project import CONFIG, MODEL, Project

VARIANTS = ("cpu-pytorch-fp32", "cpu-torchscript-fp32")
RELU = "another"


def jobs(*variants: str) -> set[str]:
    """The jobs that time these variants beside the reference's."""
    return {f"compare_activation/{RELU}-{variant}" for variant in variants}


@pytest.fixture(scope="module")
def compared(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The tiny model paired with itself with another activation, run once."""
    project = finished.copy(tmp_path_factory.mktemp("activations") / "project")
    model = CONFIG["models"][MODEL]
    models: dict[str, Any] = {MODEL: model, RELU: {**model, "activation": "relu"}}
    engines = {"pytorch": ["fp32"], "torchscript": ["fp32"]}  # no ONNX file is needed
    project.configure(models=models, engines=engines, graphs=[])
    assert jobs(*VARIANTS) <= project.run()
    return project


@pytest.fixture
def project(compared: Project, copied: Callable[[Project], Project]) -> Project:
    return copied(compared)


def test_the_same_variant_of_both_is_timed_in_pairs_of_blocks(compared: Project) -> None:
    for variant in VARIANTS:
        record = json.loads((compared / f"reports/{RELU}/{variant}.activation.json").read_text())
        assert (record["status"], record["baseline"]) == ("ok", variant)
        for shape in record["shapes"]:
            assert [len(block) for block in shape["blocks_s"]] == [2, 2]
            assert [len(block) for block in shape["baseline_blocks_s"]] == [2, 2]
    assert not list((compared / f"reports/{MODEL}").glob("*.activation.json"))


def test_summary_and_report_show_it(compared: Project) -> None:
    summary = json.loads((compared / "reports/summary.json").read_text())
    assert read_summary(compared / "reports/summary.json") == without_digests(summary)
    (entry,) = summary["activations"]
    assert (entry["model"], entry["reference"]) == (RELU, MODEL)
    assert {row["variant"] for row in entry["latency"]} == set(VARIANTS)
    assert entry["accuracy"]["samples"] == 40
    assert [summary["models"][name]["activation"] for name in (MODEL, RELU)] == ["gelu", "relu"]
    assert "accuracy and speed" in (compared / "reports/summary.html").read_text()


def test_nothing_is_planned_after_it(compared: Project) -> None:
    assert compared.plan() == set()


def test_a_missing_record_is_measured_again(project: Project) -> None:
    (project / f"reports/{RELU}/{VARIANTS[1]}.activation.json").unlink()
    done = project.run()
    assert jobs(VARIANTS[1]) <= done
    assert not done & jobs(VARIANTS[0])


def test_a_changed_engine_module_plans_the_comparison_of_that_engine_alone(
    project: Project,
) -> None:
    project.edit(
        "scripts/tightrope/engines/torchscript.py",
        "import warnings\n",
        "import warnings\n\nCHANGED = 1\n",
    )
    planned = project.plan()
    assert jobs(VARIANTS[1]) <= planned
    assert not planned & jobs(VARIANTS[0])


def test_a_reference_that_was_not_built_is_told_and_ends_nothing(project: Project) -> None:
    engine = f"artifacts/{MODEL}/engines/{VARIANTS[1]}/engine.json"
    document = json.loads((project / engine).read_text())
    project.rewrite(engine, {**document, "status": "failed", "reason": "no room"})
    record = project / f"reports/{RELU}/{VARIANTS[1]}.activation.json"
    record.unlink()
    project.run(str(record.relative_to(project.folder)), "--rerun-triggers", "mtime")
    found = json.loads(record.read_text())
    assert (found["status"], found["baseline"]) == ("ok", None)
    assert found["baseline_failed"] == "not built: no room"
