"""Shapes of images in the configuration, in buckets and in profiles: the batch is free."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from snakemake.iocontainers import Wildcards
from tightrope.errors import ConfigError
from tightrope.plan.config import checked
from tightrope.plan.job_params import traffic_settings
from tightrope.plan.plan import make_plan
from tightrope.plan.profiles import profiles_of
from tightrope.plan.shapes import buckets_of, shapes_of
from tightrope.runtimes.buckets import Buckets, in_words
from tightrope.runtimes.program_by_shape import padded

IMAGES = {
    "task": "image-classification",
    "checkpoint": "scratch:convnext?image_size=32",
    "data": "random",
}
TEXTS = {"checkpoint": "scratch:bert", "data": "random"}
SHAPES = [{"batch": 1, "height": 32, "width": 32}, {"batch": 12, "height": 32, "width": 32}]
BOTH = [*SHAPES, {"batch": 4, "sequence": 64}]


def whole(repository: Path, **changes: Any) -> dict[str, Any]:
    """A checked configuration of a model of images and one of texts."""
    config = {"models": {"digits": IMAGES, "words": TEXTS}, "shapes": BOTH, **changes}
    return checked(copy.deepcopy(config), repository / "config" / "schema.yaml")


def refused(repository: Path, **changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        whole(repository, **changes)
    return str(caught.value)


def test_each_model_takes_the_shapes_of_its_kind(repository: Path) -> None:
    config = whole(repository)
    assert shapes_of(config, "digits") == SHAPES
    assert shapes_of(config, "words") == BOTH[2:]


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([{"batch": 1}], "shapes (entry 1) = {'batch': 1}: besides batch a shape has sequence"),
        ([{"batch": 1, "height": 32}], "shapes (entry 1) = "),
        ([{"batch": 1, "height": 32, "width": 32, "sequence": 8}], "shapes (entry 1) = "),
        (SHAPES, "shapes: none with sequence, as models.words of task = text-classification"),
        (BOTH[2:], "shapes: none with height and width, as models.digits of task = image-cl"),
    ],
)
def test_a_shape_of_no_kind_and_a_model_without_one_are_refused(
    repository: Path, shapes: list[dict[str, int]], words: str
) -> None:
    assert refused(repository, shapes=shapes).startswith(f"config: {words}")


def test_buckets_of_texts_have_sequences_and_those_of_images_need_none(repository: Path) -> None:
    given = {"batch": [16], "sequence": [64, 128]}
    assert buckets_of(whole(repository, buckets=given), "digits") == {"batch": [16]}
    assert buckets_of(whole(repository, buckets=given), "words") == given
    assert refused(repository, buckets={"batch": [16]}) == (
        "config: buckets: the key sequence is missing, for models.words"
    )


def test_traffic_is_of_texts_and_of_images_which_are_not_padded(repository: Path) -> None:
    names = ["cpu-pytorch-fp32", "cpu-openvino-fp32"]
    asked = {"variants": names, "padding": ["fixed"], "batch": 4}
    config = whole(repository, engines={"openvino": ["fp32"]}, traffic=asked, devices=["cpu"])
    assert [(model, str(variant)) for model, variant in make_plan(config).traffic] == [
        (model, name) for model in ("digits", "words") for name in names
    ]
    models = [Wildcards(fromdict={"model": model}) for model in ("words", "digits")]
    words, digits = (traffic_settings(config, model) for model in models)
    assert (words["padding"], words["buckets"]) == (["fixed"], 4)
    assert digits == {name: words[name] for name in digits} | {"padding": ["none"]}
    assert set(words) - set(digits) == {"buckets"}


def test_a_request_goes_to_the_nearest_batch(repository: Path) -> None:
    buckets = Buckets(buckets_of(whole(repository), "digits"))
    assert buckets.all() == [(1,), (12,)]
    assert [buckets.nearest(size) for size in (1, 2, 12)] == [(1,), (12,), (12,)]
    assert in_words(buckets.nearest(2)) == "12"
    with pytest.raises(ValueError, match=r"a request of 13: .* batches of 1 to 12 \(`buckets`\)"):
        buckets.nearest(13)


def test_added_images_repeat_the_last_one() -> None:
    pixels = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    found = padded({"pixel_values": pixels}, (4,))["pixel_values"]
    assert (found.shape, found.dtype) == ((4, 3, 4, 5), np.float32)
    np.testing.assert_array_equal(found[:2], pixels)
    np.testing.assert_array_equal(found[2:], pixels[[1, 1]])


def test_profiles_of_images_are_of_the_batch(repository: Path) -> None:
    config = whole(repository, engines={"tensorrt": ["fp16"]})
    assert [tuple(one) for one in profiles_of(config, "digits")] == [
        ((1,), (1,), (12,)),
        ((1,), (12,), (12,)),
    ]
