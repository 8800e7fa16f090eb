"""What a student needs in the configuration, and what its teacher is asked for."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from configured import configured, refused
from tightrope.plan.distillation import ASKED, taught_inputs, teacher_inputs, teacher_request

TEACHER = "artifacts/large/checkpoint/checkpoint.json"
Keys = Callable[..., dict[str, Any]]


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """From keys of a student and of its `distill` to the configuration."""
    rows = "".join(f"text {i},{i % 2}\n" for i in range(20))
    (tmp_path / "texts.csv").write_text(f"text,label\n{rows}")
    (tmp_path / "notes.csv").write_text("text\na note")
    large = {"checkpoint": "scratch:bert", "data": f"files:{tmp_path}/texts.csv", "train": {}}
    large |= {"splits": {"train": 8, "evaluation": 4}}

    def keys(distill: Any = None, **keys: Any) -> dict[str, Any]:
        small = {"from": "large", "train": {}, "distill": {"from": "large", **(distill or {})}}
        return {
            "models": {"large": large, "small": {**small, **keys}},
            "engines": {"pytorch": ["fp32"]},
            "calibration": {"samples": [4], "pool": 8},
        }

    return keys


def test_a_student_with_other_examples_has_outputs_of_its_own(keys: Keys, tmp_path: Path) -> None:
    config = configured(**keys(splits={"train": 7, "evaluation": 4}))
    own = {"teacher": "artifacts/small/teacher/student/outputs.json"}
    inputs = {"teacher": TEACHER, "data": "artifacts/small/splits/train.json"}
    assert taught_inputs(config, "small") == own
    assert taught_inputs(config, "large") == {}
    assert teacher_inputs(config, "small", "student") == inputs
    # texts without labels are inputs, and the splits in which they must not occur
    config = configured(**keys({"unlabelled": f"files:{tmp_path}/notes.csv"}))
    assert taught_inputs(config, "small") == own
    held_out = [f"artifacts/small/splits/{split}.json" for split in ("calibration", "evaluation")]
    more = {"splits": held_out, "tables": [f"{tmp_path}/notes.csv"]}
    assert teacher_inputs(config, "small", "student") == inputs | more


@pytest.mark.parametrize(
    ("distill", "train", "asked"),
    [
        ({}, {}, "64-states"),
        ({"hidden": 0}, {}, "64"),
        ({"temperature": 4, "labels": 0.1, "hidden": 0.2}, {"sequence": 32}, "32-states"),
    ],
)
def test_students_with_the_examples_of_their_teacher_share_its_outputs(keys, distill, train, asked):
    config = configured(**keys(distill, train=train))
    path = f"artifacts/large/teacher/{asked}/outputs.json"
    assert taught_inputs(config, "small") == {"teacher": path}
    inputs = {"teacher": TEACHER, "data": "artifacts/large/splits/train.json"}
    assert teacher_inputs(config, "large", asked) == inputs
    request = teacher_request(config, "large", asked)
    assert (request["teacher"], request["unlabelled"]) == ("large", None)
    assert request["sequence"] == (32 if train else 64)
    assert request["hidden"] == asked.endswith("-states")
    assert not {"temperature", "labels"} & set(request), "how the loss is weighed"
    assert re.fullmatch(ASKED, asked)


@pytest.mark.parametrize(
    ("distill", "changes", "words"),
    [
        ({}, {"train": None}, ": a student needs a recipe; say train"),
        ({"unlabelled": "files:nowhere.csv"}, {}, ".unlabelled = files:nowhere.csv: no file match"),
        ({"unlabelled": "hub:a/b@c"}, {}, ".unlabelled = 'hub:a/b@c'"),
        ({"temperature": 0}, {}, ".temperature = 0"),
        ({"teacher": "large"}, {}, ".teacher: unknown key"),
    ],
)
def test_what_does_not_fit_is_named(keys: Keys, distill: Any, changes: Any, words: str) -> None:
    message = refused(**keys(distill, **changes))
    assert message.startswith(f"config: models.small.distill{words}")
