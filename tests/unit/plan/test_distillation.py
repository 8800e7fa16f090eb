"""What a student needs in the configuration, and what its teacher is asked for."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tightrope.errors import ConfigError
from tightrope.plan.config import checked
from tightrope.plan.distillation import ASKED, taught_inputs, teacher_inputs, teacher_request

TEXTS = "text,label\n" + "".join(f"text {i},{i % 2}\n" for i in range(20))


@pytest.fixture
def planned(tmp_path: Path, repository: Path) -> Any:
    """Return the checked configuration with a student that has these keys."""
    (tmp_path / "texts.csv").write_text(TEXTS)
    (tmp_path / "notes.csv").write_text("text\na note")
    large = {
        "checkpoint": "scratch:bert",
        "data": f"files:{tmp_path}/texts.csv",
        "splits": {"train": 8, "evaluation": 4},
        "train": {},
    }

    def plan(distill: Any = None, **keys: Any) -> Any:
        small = {"from": "large", "train": {}, "distill": {"from": "large", **(distill or {})}}
        config = {
            "models": {"large": large, "small": {**small, **keys}},
            "engines": {"pytorch": ["fp32"]},
            "calibration": {"samples": [4], "pool": 8},
        }
        return checked(config, repository / "config" / "schema.yaml")

    return plan


SMALL = SimpleNamespace(model="small", asked="student")
LARGE = SimpleNamespace(model="large", asked="64-states")


def test_a_student_reads_its_teachers_outputs_and_others_do_not(planned: Any) -> None:
    config = planned(splits={"train": 7, "evaluation": 4})
    own = {"teacher": "artifacts/small/teacher/student/outputs.json"}
    assert taught_inputs(config, SMALL) == own
    assert taught_inputs(config, LARGE) == {}
    assert teacher_inputs(config, SMALL) == {
        "teacher": "artifacts/large/checkpoint/checkpoint.json",
        "data": "artifacts/small/splits/train.json",
    }


@pytest.mark.parametrize(
    ("distill", "train", "asked"),
    [
        ({}, {}, "64-states"),
        ({"hidden": 0}, {}, "64"),
        ({"temperature": 4, "labels": 0.1, "hidden": 0.2}, {"sequence": 32}, "32-states"),
    ],
)
def test_students_with_the_examples_of_their_teacher_share_its_outputs(
    planned: Any, distill: Any, train: Any, asked: str
) -> None:
    config = planned(distill, train=train)
    path = f"artifacts/large/teacher/{asked}/outputs.json"
    assert taught_inputs(config, SMALL) == {"teacher": path}
    wildcards = SimpleNamespace(model="large", asked=asked)
    assert teacher_inputs(config, wildcards) == {
        "teacher": "artifacts/large/checkpoint/checkpoint.json",
        "data": "artifacts/large/splits/train.json",
    }
    request = teacher_request(config, wildcards)
    assert (request["teacher"], request["unlabelled"]) == ("large", None)
    assert request["sequence"] == (32 if train else 64)
    assert request["hidden"] == asked.endswith("-states")
    assert re.fullmatch(ASKED, asked)


def test_texts_without_labels_are_inputs_and_held_out_splits_too(
    planned: Any, tmp_path: Path
) -> None:
    inputs = teacher_inputs(planned({"unlabelled": f"files:{tmp_path}/notes.csv"}), SMALL)
    assert inputs["tables"] == [f"{tmp_path}/notes.csv"]
    assert inputs["splits"] == [
        "artifacts/small/splits/calibration.json",
        "artifacts/small/splits/evaluation.json",
    ]


def test_how_the_loss_is_weighed_is_no_matter_of_the_teacher(planned: Any) -> None:
    request = teacher_request(planned(), SMALL)
    other = planned({"temperature": 4, "labels": 0.1, "hidden": 0.2})
    assert teacher_request(other, SMALL) == request
    assert request["hidden"] is True
    assert teacher_request(planned({"hidden": 0}), SMALL)["hidden"] is False


@pytest.mark.parametrize(
    ("distill", "keys", "words"),
    [
        ({}, {"train": None}, "models.small.distill: a student needs a recipe; say train"),
        (
            {"unlabelled": "files:nowhere.csv"},
            {},
            "models.small.distill.unlabelled = files:nowhere.csv: no file matches",
        ),
        ({"unlabelled": "hub:a/b@c"}, {}, "models.small.distill.unlabelled = 'hub:a/b@c'"),
        ({"temperature": 0}, {}, "models.small.distill.temperature = 0"),
        ({"teacher": "large"}, {}, "models.small.distill.teacher: unknown key"),
    ],
)
def test_what_does_not_fit_is_named(planned: Any, distill: Any, keys: Any, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        planned(distill, **keys)
    assert words in str(error.value)
