"""Digests of the code of each step in a summary."""

import shutil
from pathlib import Path

import pytest
from tightrope.summary.code import SCRIPTS, step_digests


@pytest.mark.parametrize(
    ("module", "steps"),
    [
        ("engines/openvino.py", {f"{step} openvino" for step in ("build", "time", "evaluate")}),
        ("training/loop.py", {"train_model"}),
    ],
)
def test_a_module_that_changed_changes_the_steps_that_import_it(
    module: str, steps: set[str], tmp_path: Path
) -> None:
    shutil.copytree(SCRIPTS, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.part"))
    path = tmp_path / "tightrope" / module
    path.write_text(path.read_text() + "\nADDED = 1\n")
    before, after = step_digests(), step_digests(tmp_path)
    assert {step for step in before if before[step] != after[step]} == steps


def test_a_comment_changes_no_step(tmp_path: Path) -> None:
    shutil.copytree(SCRIPTS, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.part"))
    path = tmp_path / "tightrope/errors.py"
    path.write_text(path.read_text() + "\n# a remark\n")
    assert step_digests() == step_digests(tmp_path)
