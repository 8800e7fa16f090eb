"""A cascade in the DAG: two models that are served as one, measured by one job."""

from collections.abc import Callable
from typing import Any

import pytest
from tightrope.records.cascade import CascadeRecord
from tightrope.records.rounds import FEWEST_ROUNDS
from tightrope.summary.cascades import cascade_entry
from tiny_project import CONFIG, MODEL, ROUNDS, Project

SMALL, VARIANT = "small", "cpu-openvino-fp32"
RECIPE = {**CONFIG["models"][MODEL]["train"], "epochs": 1}
MODELS: dict[str, Any] = {
    MODEL: CONFIG["models"][MODEL],
    SMALL: {"from": MODEL, "prune": {"layers": 1}, "train": RECIPE},
}
VARIANTS = {"small": VARIANT, "large": VARIANT}
# what a pool of 32 examples can prove: 1 - 0.05 ** (1 / 32) is below 0.2
ALIKE: dict[str, Any] = {
    **{"small": SMALL, "large": MODEL, "variants": VARIANTS, "agreement": 0.8, "traffic": True}
}
TRAFFIC = {"batch": 4, "seconds": 0.3, "scenarios": ["single_stream", "offline"]}
# one point of accuracy takes a pool of 301
EXACT: dict[str, Any] = {"small": SMALL, "large": MODEL, "variants": VARIANTS}
CASCADES = {"alike": ALIKE, "exact": EXACT}
PATHS = [f"reports/{name}.cascade.json" for name in ("alike", "exact")]


@pytest.fixture(scope="module")
def served(finished: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project after a run that measured two cascades of the same models."""
    project = finished.copy(tmp_path_factory.mktemp("cascade") / "project")
    project.configure(models=MODELS, cascades=CASCADES, traffic=TRAFFIC)
    ran = project.run(*PATHS)
    assert {"measure_cascade/alike", "measure_cascade/exact", f"train_model/{SMALL}"} <= ran
    assert not [job for job in ran if "latency" in job or "accuracy" in job]
    return project


@pytest.fixture
def project(served: Project, copied: Callable[[Project], Project]) -> Project:
    return copied(served)


def test_the_cascade_answers_like_its_models(served: Project) -> None:
    record = CascadeRecord.read(served / PATHS[0])
    assert (record.status, record.reason, record.batch) == ("ok", None, 2)
    assert (record.model, record.small_model) == (MODEL, SMALL)
    answers = record.evaluation
    assert answers is not None
    assert len(answers["labels"]) == 40
    for place, escalated in enumerate(answers["escalated"]):
        by = "large" if escalated else "small"
        assert answers["cascade"][place] == answers[by][place]
    assert record.calibration is not None
    assert len(record.calibration["large"]) == 32


def test_the_threshold_is_the_lowest_that_passed_and_all_before_it_passed(served: Project) -> None:
    record = CascadeRecord.read(served / PATHS[0])
    passed = [test["p_value"] <= 0.05 for test in record.tests]
    assert all(passed[:-1])
    assert record.threshold == record.tests[-1 if passed[-1] else -2]["threshold"]


def test_all_three_answer_the_same_examples_in_every_round(served: Project) -> None:
    record = CascadeRecord.read(served / PATHS[0])
    assert FEWEST_ROUNDS <= len(record.rounds) <= ROUNDS
    assert all([len(block) for block in one["blocks_s"]] == [1, 1, 1] for one in record.rounds)
    assert record.block_samples is not None
    assert 2 <= record.block_samples <= 40
    assert len(record.peak_rss_bytes) == 3


def test_under_traffic_the_three_answer_the_same_queries_in_turn(served: Project) -> None:
    record = CascadeRecord.read(served / PATHS[0])
    assert record.traffic is not None
    assert record.traffic["samples"] == 40
    rounds: dict[tuple[str, int], list[str]] = {}
    for test in record.traffic["tests"]:
        assert test["valid"]
        rounds.setdefault((test["scenario"], test["round"]), []).append(test["name"])
    assert {scenario for scenario, _ in rounds} == set(TRAFFIC["scenarios"])
    assert all(sorted(names) == ["cascade", "large", "small"] for names in rounds.values())
    entry = cascade_entry(record, accept_disturbed=True)["traffic"]
    assert entry is not None
    assert all(row["samples_per_s"] > 0 for row in entry["rows"])
    assert CascadeRecord.read(served / PATHS[1]).traffic is None


def test_another_batch_of_traffic_plans_the_cascade_that_has_it_alone(project: Project) -> None:
    project.configure(models=MODELS, cascades=CASCADES, traffic={**TRAFFIC, "batch": 2})
    assert project.plan(*PATHS) == {"measure_cascade/alike"}


def test_a_pool_that_proves_nothing_leaves_the_large_model_alone(served: Project) -> None:
    record = CascadeRecord.read(served / PATHS[1])
    assert (record.status, record.threshold, record.evaluation) == ("ok", None, None)
    assert record.rounds == []
    entry = cascade_entry(record)
    assert entry["verdict"] == "large alone"
    assert "the calibration split is too small" in entry["sentence"]


def test_nothing_is_planned_after_it(served: Project) -> None:
    assert served.plan(*PATHS) == set()


def test_the_report_asks_for_every_cascade(project: Project) -> None:
    (project / PATHS[1]).unlink()
    planned = project.plan("reports/summary.html")
    assert {job for job in planned if "cascade" in job} == {"measure_cascade/exact"}
    project.configure()
    assert not {job for job in project.plan() if "cascade" in job}


def test_another_share_of_equal_answers_plans_that_cascade_alone(project: Project) -> None:
    cascades = {**CASCADES, "alike": {**ALIKE, "agreement": 0.7}}
    project.configure(models=MODELS, cascades=cascades, traffic=TRAFFIC)
    assert project.plan(*PATHS) == {"measure_cascade/alike"}


def test_another_budget_trains_and_builds_nothing(project: Project) -> None:
    project.configure(models=MODELS, cascades=CASCADES, traffic=TRAFFIC, accuracy_budget_points=2.0)
    assert project.plan(*PATHS) == {"measure_cascade/alike", "measure_cascade/exact"}
