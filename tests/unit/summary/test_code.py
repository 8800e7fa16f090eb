"""Digests of the code of each step in a summary."""

import shutil
from pathlib import Path

from tightrope.summary.runs import SCRIPTS, step_digests


def test_a_changed_function_changes_the_steps_that_reach_it_and_a_comment_none(tmp_path):
    shutil.copytree(SCRIPTS, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.part"))
    engine, errors = (
        Path(tmp_path, "tightrope", one) for one in ("engines/openvino.py", "errors.py")
    )
    engine.write_text(engine.read_text().replace("def build(", "def build(added, "))
    errors.write_text(errors.read_text() + "\n# a remark\n")
    before, after = step_digests(), step_digests(tmp_path)
    assert {step for step in before if before[step] != after[step]} == {"build openvino"}
