"""Digests of the code of each step in a summary."""

import shutil
from pathlib import Path

import pytest
from tightrope.summary.inputs import SCRIPTS, step_digests


@pytest.mark.parametrize(
    ("module", "function", "steps"),
    [
        ("engines/openvino.py", "build", {"build openvino"}),
        ("training/loop.py", "fine_tune", {"train_model"}),
    ],
)
def test_a_function_that_changed_changes_the_steps_that_can_reach_it(
    module: str, function: str, steps: set[str], tmp_path: Path
) -> None:
    shutil.copytree(SCRIPTS, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.part"))
    path = tmp_path / "tightrope" / module
    path.write_text(path.read_text().replace(f"def {function}(", f"def {function}(added, "))
    before, after = step_digests(), step_digests(tmp_path)
    assert {step for step in before if before[step] != after[step]} == steps


def test_a_comment_changes_no_step(tmp_path: Path) -> None:
    shutil.copytree(SCRIPTS, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.part"))
    path = tmp_path / "tightrope/errors.py"
    path.write_text(path.read_text() + "\n# a remark\n")
    assert step_digests() == step_digests(tmp_path)
