"""What a student needs in the configuration, and what its teacher is asked for."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tightrope.errors import ConfigError
from tightrope.plan.config import checked
from tightrope.plan.distillation import taught_inputs, teacher_inputs, teacher_request

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


SMALL = SimpleNamespace(model="small")


def test_a_student_reads_its_teachers_outputs_and_others_do_not(planned: Any) -> None:
    config = planned()
    assert taught_inputs(config, SMALL) == {"teacher": "artifacts/small/teacher/outputs.json"}
    assert taught_inputs(config, SimpleNamespace(model="large")) == {}


def test_the_teacher_sees_the_train_split_of_its_student(planned: Any) -> None:
    assert teacher_inputs(planned(), SMALL) == {
        "teacher": "artifacts/large/checkpoint/checkpoint.json",
        "data": "artifacts/small/splits/train.json",
    }


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
