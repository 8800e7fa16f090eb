"""A padded shape is measured apart from the full one; engines see its batch and sequence alone."""

import copy
from pathlib import Path
from typing import Any

import pytest
from snakemake.iocontainers import Wildcards
from tightrope.errors import ConfigError
from tightrope.plan.config import checked
from tightrope.plan.job_params import engine_options
from tightrope.plan.shapes import (
    buckets_of,
    free_sizes,
    full_shapes_of_model,
    profiles_of,
    shapes_of_model,
)

FULL = [{"batch": 1, "sequence": 64}, {"batch": 32, "sequence": 128}]
PADDED = [*FULL, {"batch": 32, "sequence": 128, "tokens": 64}]
MODEL = Wildcards(fromdict={"model": "words", "device": "cuda", "rest": "fp16"})


def whole(repository: Path, shapes: Any) -> dict[str, Any]:
    config = {
        "models": {"words": {"checkpoint": "scratch:bert", "data": "random"}},
        "engines": {"tensorrt": ["fp16"], "openvino": ["fp32"]},
        "shapes": shapes,
    }
    return checked(copy.deepcopy(config), repository / "config" / "schema.yaml")


def refused(repository: Path, shapes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        whole(repository, shapes)
    return str(caught.value)


def test_a_padded_shape_and_the_full_one_are_measured_both(repository: Path) -> None:
    assert shapes_of_model(whole(repository, PADDED), MODEL) == PADDED


def test_two_shapes_that_differ_in_their_tokens_alone_are_not_equal(repository: Path) -> None:
    some = [{"batch": 8, "sequence": 64, "tokens": tokens} for tokens in (16, 32, 64)]
    assert shapes_of_model(whole(repository, some), MODEL) == some
    assert "non-unique" in refused(repository, [some[0], some[0]])


def test_engines_profiles_buckets_and_costs_are_those_of_the_full_shapes(repository: Path) -> None:
    full, padded = (whole(repository, shapes) for shapes in (FULL, PADDED))
    for settings_of in (buckets_of, profiles_of, free_sizes):
        assert settings_of(padded, "words") == settings_of(full, "words")
    for engine in ("tensorrt", "onnxruntime"):
        assert engine_options(padded, engine, MODEL) == engine_options(full, engine, MODEL)
    assert full_shapes_of_model(padded, MODEL) == full_shapes_of_model(full, MODEL) == FULL


def test_a_padded_shape_alone_makes_the_engines_of_the_full_one(repository: Path) -> None:
    alone = whole(repository, [FULL[0], PADDED[2]])
    assert profiles_of(alone, "words") == profiles_of(whole(repository, FULL), "words")
    assert full_shapes_of_model(alone, MODEL) == FULL


def test_numbers_on_the_command_line_are_numbers(repository: Path) -> None:
    words = [{"batch": "2", "sequence": "8", "tokens": "5"}]
    assert whole(repository, words)["shapes"] == [{"batch": 2, "sequence": 8, "tokens": 5}]


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (
            {"batch": 1, "sequence": 8, "tokens": 9},
            "shapes (entry 1).tokens = 9: more than its sequence of 8; lower it",
        ),
        ({"batch": 1, "sequence": 8, "tokens": 1}, "shapes (entry 1).tokens = 1: 1 is less than"),
        ({"batch": 1, "sequence": 8, "tokens": 4.5}, "shapes (entry 1).tokens = 4.5: must be int"),
        (
            {"batch": 1, "height": 8, "width": 8, "tokens": 4},
            "shapes (entry 1) = {'batch': 1, 'height': 8, 'width': 8, 'tokens': 4}: besides batch "
            "a shape has sequence, and tokens if some of it is padding, for texts, or height and",
        ),
        ({"batch": 1, "tokens": 4}, "shapes (entry 1) = {'batch': 1, 'tokens': 4}: besides batch"),
    ],
)
def test_tokens_beyond_the_sequence_or_of_images_are_refused_in_one_line(
    repository: Path, shape: dict[str, Any], words: str
) -> None:
    told = refused(repository, [shape])
    assert told.startswith(f"config: {words}")
    assert "\n" not in told
