"""Whose first calls after a pause are measured, at which shape, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from snakemake.iocontainers import Wildcards
from tightrope.errors import ConfigError
from tightrope.plan.config import checked
from tightrope.plan.plan import make_plan, records
from tightrope.plan.studies import idleness_settings, idleness_shape
from tightrope.plan.wildcards import columns

MODEL = {"checkpoint": "scratch:bert?max_position_embeddings=64", "data": "random"}
OPENVINO = "cpu-openvino-fp32"
SHAPES = [{"batch": 4, "sequence": 32}, {"batch": 1, "sequence": 32}]
TINY = Wildcards(fromdict={"model": "tiny"})


def configured(repository: Path, **idleness: Any) -> Any:
    document = {
        **{"devices": ["cpu"], "emulated": True, "shapes": SHAPES},
        "engines": {"openvino": ["fp32"], "pytorch": ["fp32"]},
        "models": {"tiny": {**MODEL, "max_sequence": 64}, "other": {**MODEL, "max_sequence": 64}},
        "idleness": idleness,
    }
    return checked(document, repository / "config/schema.yaml")


def test_nothing_is_measured_by_default(repository: Path) -> None:
    config = configured(repository)
    assert config["idleness"]["variants"] == []
    assert make_plan(config).idleness == []


def test_each_model_with_the_variant_has_a_record(repository: Path) -> None:
    plan = make_plan(configured(repository, variants=[OPENVINO]))
    assert columns(plan.idleness) == {"model": ["tiny", "other"], "variant": [OPENVINO] * 2}
    paths = [path for paths in records(plan).values() for path in paths if ".idleness." in path]
    assert paths == [f"reports/{name}/{OPENVINO}.idleness.json" for name in ("tiny", "other")]


def test_neither_the_variants_nor_the_shape_are_among_the_settings(repository: Path) -> None:
    config = configured(repository, variants=[OPENVINO], pauses=2)
    assert idleness_settings(config, TINY) == {"pauses": [2], "max_seconds": 120}


def test_the_first_shape_is_measured_where_no_other_is_named(repository: Path) -> None:
    assert idleness_shape(configured(repository), TINY) == SHAPES[0]
    named = configured(repository, shape={"sequence": 32, "batch": 1})
    assert idleness_shape(named, TINY) == SHAPES[1]


def test_a_model_without_the_named_shape_is_measured_at_its_first() -> None:
    image = {"batch": 1, "height": 8, "width": 8}
    config = {
        "shapes": [*SHAPES, image],
        "models": {"tiny": {"task": "image-classification"}},
        "idleness": {"shape": SHAPES[1]},
    }
    assert idleness_shape(config, TINY) == image


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"variants": ["cpu-openvino-fp23"]},
            "idleness.variants: cpu-openvino-fp23: no configured variant; did you mean "
            '"cpu-openvino-fp32"?',
        ),
        (
            {"shape": {"batch": 2, "sequence": 32}},
            "idleness.shape = {batch: 2, sequence: 32}: not measured",
        ),
        ({"pauses": [0]}, "idleness.pauses (entry 1) = 0: 0 is less than or equal to the minimum"),
        ({"pauses": []}, "idleness.pauses = []"),
        ({"pause": [1]}, 'idleness.pause: unknown key; did you mean "pauses"?'),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    repository: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        configured(repository, **changes)
    assert str(refused.value).startswith(f"config: {words}")
