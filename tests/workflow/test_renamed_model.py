"""A renamed model keeps what was made for it, and goes on to be built again where it has to."""

import json
import subprocess
import sys

from tiny_project import CONFIG, MODEL, VARIANTS, Project

NEW = "renamed"


def rename(project: Project, old: str, new: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "tools/rename_model.py", old, new]
    return subprocess.run(words, cwd=project.folder, capture_output=True, text=True, check=False)


def test_a_renamed_model_plans_its_pictures_and_the_report_alone(project: Project) -> None:
    bundle = project / f"artifacts/{MODEL}/bundle/{VARIANTS[0]}.tar.gz"
    bundle.parent.mkdir()
    bundle.touch()
    assert rename(project, MODEL, NEW).returncode == 0
    assert not (project / f"artifacts/{NEW}/bundle").exists()
    project.models = {NEW: CONFIG["models"][MODEL]}
    project.configure()
    drawn = {f"render_graph/{NEW}-{graph}" for graph in ("simplified", "u8s8-minmax-8")}
    planned = drawn | {"summarize/summarize", "render_report/render_report"}
    assert project.run() == planned
    assert project.plan() == set()
    summary = json.loads((project / "reports/summary.json").read_text())
    assert list(summary["models"]) == [NEW]
    assert {one["model"] for one in summary["results"]} == {NEW}
    assert len(summary["results"]) == len(VARIANTS)


def test_a_setting_that_changes_after_the_renaming_is_noticed(project: Project) -> None:
    rename(project, MODEL, NEW)
    recipe = {**CONFIG["models"][MODEL]["train"], "epochs": 1}
    project.models = {NEW: {**CONFIG["models"][MODEL], "train": recipe}}
    project.configure()
    planned = project.plan()
    assert f"train_model/{NEW}" in planned
    assert not {job for job in planned if job.startswith(("prepare_", "split_"))}


def test_a_model_that_is_not_there_and_a_name_that_is_taken_are_errors(project: Project) -> None:
    missing = rename(project, "nothing", NEW)
    assert missing.returncode != 0
    assert missing.stderr == "error: artifacts/nothing: there is no such folder; name a model\n"
    (project / f"reports/{NEW}").mkdir()
    taken = rename(project, MODEL, NEW)
    assert taken.stderr == f"error: reports/{NEW}: exists; remove it or take another name\n"
    assert (project / f"artifacts/{MODEL}").is_dir()
