"""Measured shapes of texts and images, and the buckets and profiles that follow from them."""

from typing import Any

import pytest
from configured import configured, refused
from tightrope.plan import shapes as plan_shapes
from tightrope.plan.job_params import engine_options
from tightrope.plan.plan import make_plan
from tightrope.plan.studies import study_settings
from tightrope.runtimes.shapes import Buckets
from tightrope.variants import parse

IMAGES = {"task": "image-classification", "checkpoint": "scratch:convnext?image_size=32"}
IMAGES |= {"data": "random"}
MODELS = {"digits": IMAGES, "words": {"checkpoint": "scratch:bert", "data": "random"}}
OF_IMAGES = [{"batch": 1, "height": 32, "width": 32}, {"batch": 12, "height": 32, "width": 32}]
BOTH = [*OF_IMAGES, {"batch": 4, "sequence": 64}]


def whole(**keys: Any) -> dict[str, Any]:
    """A configuration of a model of images and one of texts."""
    return configured(**{"models": MODELS, "shapes": BOTH, **keys})


def of_texts(shapes: list[dict[str, int]]) -> dict[str, Any]:
    engines = {"tensorrt": ["fp16"], "openvino": ["fp32"]}
    return configured(models={"words": MODELS["words"]}, engines=engines, shapes=shapes)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([{"batch": 1}], "(entry 1) = {'batch': 1}: besides batch a shape has sequence, and token"),
        ([{**OF_IMAGES[0], "sequence": 8}], "(entry 1) = "),
        ([{**OF_IMAGES[0], "tokens": 4}], "(entry 1) = "),
        (OF_IMAGES, ": none with sequence, as models.words of task = text-classification"),
        (BOTH[2:], ": none with height and width, as models.digits of task = image-cl"),
        ([*BOTH[:2], {"batch": 1, "sequence": 8, "tokens": 9}], "(entry 3).tokens = 9: more than "),
        ([{"batch": 1, "sequence": 8, "tokens": 1}], "(entry 1).tokens = 1: 1 is less than"),
        ([{"batch": 1, "sequence": 8, "tokens": 4.5}], "(entry 1).tokens = 4.5: must be int"),
        ([BOTH[2], BOTH[2]], " = [{'batch': 4, 'sequence': 64}, {'batch': 4, 'sequence': 64}]: [{"),
    ],
    ids=str,
)
def test_a_shape_of_no_kind_and_a_model_without_one_are_refused(shapes: Any, words: str) -> None:
    message = refused(models=MODELS, shapes=shapes)
    assert message.replace("shapes (", "shapes(").startswith(f"config: shapes{words}")


def test_each_model_takes_the_shapes_buckets_and_profiles_of_its_kind() -> None:
    config = whole()
    assert plan_shapes.shapes_of(config, "digits") == OF_IMAGES
    assert plan_shapes.shapes_of(config, "words") == BOTH[2:]
    profiles = [tuple(one) for one in plan_shapes.profiles_of(config, "digits")]
    assert profiles == [((1,),) * 3, ((12,),) * 3, ((1,), (12,), (12,))]
    buckets = Buckets(plan_shapes.buckets_of(config, "digits"))
    assert [buckets.nearest(size) for size in (1, 2, 12)] == [(1,), (12,), (12,)]
    with pytest.raises(ValueError, match=r"a request of 13: .* batches of 1 to 12 \(`buckets`\)"):
        buckets.nearest(13)
    # powers of two to the longest that is measured
    longer = of_texts([{"batch": 3, "sequence": 200}])
    found = plan_shapes.buckets_of(longer, "words")
    assert found == {"batch": [1, 3], "sequence": [32, 64, 128, 200]}
    given = {"batch": [16], "sequence": [64, 128]}
    assert plan_shapes.buckets_of(whole(buckets=given), "digits") == {"batch": [16]}
    assert plan_shapes.buckets_of(whole(buckets=given), "words") == given


def test_traffic_is_of_texts_and_of_images_which_are_not_padded() -> None:
    names = ["cpu-pytorch-fp32", "cpu-openvino-fp32"]
    asked = {"variants": names, "padding": ["fixed"], "batch": 4}
    config = whole(engines={"openvino": ["fp32"]}, traffic=asked, devices=["cpu"])
    planned = [(model, str(variant)) for model, variant in make_plan(config).measured["traffic"]]
    assert planned == [(model, name) for model in MODELS for name in names]
    words = study_settings(config, "traffic", "words")
    digits = study_settings(config, "traffic", "digits")
    assert (words["padding"], words["buckets"]) == (["fixed"], 4)
    assert digits == {name: words[name] for name in digits}
    assert set(words) - set(digits) == {"padding", "buckets"}
    assert "variants" not in words


FULL = [{"batch": 1, "sequence": 64}, {"batch": 32, "sequence": 128}]
PADDED = {"batch": 32, "sequence": 128, "tokens": 64}


@pytest.mark.parametrize("shapes", [[*FULL, PADDED], [FULL[0], PADDED]])
def test_a_padded_shape_is_measured_apart_and_makes_the_engines_of_the_full_one(shapes) -> None:
    full, padded = of_texts(FULL), of_texts(shapes)
    assert plan_shapes.shapes_of(padded, "words") == shapes
    for settings_of in (plan_shapes.buckets_of, plan_shapes.profiles_of, plan_shapes.free_sizes):
        assert settings_of(padded, "words") == settings_of(full, "words")
    for variant in map(parse, ("cuda-tensorrt-fp16", "cuda-onnxruntime-fp16")):
        assert engine_options(padded, "words", variant) == engine_options(full, "words", variant)
    assert plan_shapes.full_shapes_of(padded, "words") == FULL
    tokens = [{**PADDED, "tokens": number} for number in (16, 32)]
    assert plan_shapes.shapes_of(of_texts(tokens), "words") == tokens
