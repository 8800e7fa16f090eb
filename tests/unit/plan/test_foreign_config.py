"""Configurations that no sensible user writes still end in one line that names the key."""

from pathlib import Path
from typing import Any

import pytest
from tightrope.errors import ConfigError
from tightrope.plan.config import checked

MODEL = {"checkpoint": "scratch:bert?max_position_embeddings=512", "data": "random"}


def refused(repository: Path, changes: dict[str, Any]) -> str:
    document = {"models": {"tiny": dict(MODEL)}, **changes}
    with pytest.raises(ConfigError) as caught:
        checked(document, repository / "config/schema.yaml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def with_model(**keys: Any) -> dict[str, Any]:
    return {"models": {"tiny": {**MODEL, **keys}}}


CASES = [
    (with_model(checkpoint="path:~nosuchuser"), "models.tiny.checkpoint = path:~nosuchuser: there"),
    (with_model(checkpoint=f"path:{'a' * 4096}"), "File name too long"),
    (with_model(checkpoint=f"onnx:{'a/' * 2048}b"), "File name too long"),
    (with_model(data=f"files:{'a' * 4096}"), "File name too long"),
    (with_model(data="files:/**/*"), "searches the whole machine"),
    (with_model(data="files:~nosuchuser/a.csv"), "models.tiny.data = files:~nosuchuser/a.csv"),
    (with_model(data="files:a/**b/*"), "models.tiny.data"),
    (with_model(checkpoint="scratch:bert?hidden_size=["), "models.tiny.checkpoint"),
    (with_model(seed=2**64), "models.tiny.seed"),
    (with_model(train={"seed": 2**64}), "models.tiny.train.seed"),
    (with_model(**{"from": ["tiny"]}), "models.tiny.from = ['tiny']: not the name of a model"),
    (with_model(distill={"from": {}}), "models.tiny.distill.from = {}: not the name of a model"),
    (with_model(data="x" * 5000), "models.tiny.data"),
    ({"models": list(range(2000))}, "config: models = [0, 1"),
    ({"models": {"a" * 300: MODEL}}, "a word of at most 100 small letters"),
    ({"accuracy_budget_points": 1e25}, "accuracy_budget_points"),
    ({"shapes": [{"batch": 10**30, "sequence": 8}]}, "shapes (entry 1).batch"),
    ({"shapes": [{"batch": 10**7, "sequence": 8}]}, "shapes (entry 1).batch"),
    ({"calibration": {"pool": 10**30}}, "calibration.pool"),
    ({"accuracy_seconds": 1e300}, "accuracy_seconds"),
]


@pytest.mark.parametrize(("changes", "said"), CASES, ids=[said for _, said in CASES])
def test_a_value_without_sense_is_one_line(
    repository: Path, changes: dict[str, Any], said: str
) -> None:
    message = refused(repository, changes)
    assert said in message
    assert len(message) < 1000


def test_aliases_within_themselves_and_of_aliases_are_one_line(repository: Path) -> None:
    within: list[Any] = []
    within.append(within)
    assert "levels" in refused(repository, {"shapes": within})
    bomb: list[Any] = ["x"]
    for _ in range(12):
        bomb = [bomb] * 10
    assert "aliases" in refused(repository, {"shapes": bomb})
