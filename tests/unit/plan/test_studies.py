"""Measurements on request: of which variants, with which settings, and what is refused."""

from typing import Any

import pytest
from configured import configured, refused
from tightrope.plan import studies
from tightrope.plan.plan import make_plan, records

MODEL = {"checkpoint": "scratch:bert?max_position_embeddings=64", "data": "random"}
MODEL |= {"max_sequence": 64}
OPENVINO = "cpu-openvino-fp32"
SHAPES = [{"batch": 4, "sequence": 32}, {"batch": 1, "sequence": 32}]
SIZES = {"throughput": {"batches": [1, 4], "sequence": 32}, "traffic": {"batch": 4}}
ASKED: dict[str, Any] = {
    **{"models": {"tiny": MODEL, "other": MODEL}, "shapes": SHAPES, "emulated": True},
    **{"devices": ["cpu"], "engines": {"openvino": ["fp32"], "pytorch": ["fp32"]}, **SIZES},
}
IMAGE = {"batch": 1, "height": 8, "width": 8}
OF_IMAGES = {"tiny": {"task": "image-classification"}}


@pytest.mark.parametrize("kind", ["traffic", "throughput", "idleness"])
def test_each_model_with_the_variant_has_a_record_and_by_default_there_is_none(kind: str) -> None:
    plain = make_plan(configured(**ASKED))
    assert plain.measured[kind] == []
    own = {**SIZES.get(kind, {}), "variants": [OPENVINO]}
    plan = make_plan(configured(**{**ASKED, kind: own}))
    found = [path for paths in records(plan).values() for path in paths if f".{kind}." in path]
    assert found == [f"reports/{name}/{OPENVINO}.{kind}.json" for name in ("tiny", "other")]


def test_the_variants_are_no_setting_of_a_job_the_shape_is() -> None:
    asked = {**ASKED["throughput"], "variants": [OPENVINO], "p99_ms": 50}
    config = configured(**{**ASKED, "throughput": asked, "idleness": {"pauses": 2}})
    assert studies.study_settings(config, "throughput", "tiny") == {
        **{"batches": [1, 4], "sequence": 32, "instances": "auto", "threads": "auto"},
        **{"p99_ms": 50, "seconds": 2.0, "max_seconds": 300},
    }
    found = studies.study_settings(config, "idleness", "tiny")
    assert found == {"pauses": [2], "shape": SHAPES[0], "max_seconds": 120}
    images = {"models": OF_IMAGES, "throughput": {"variants": [], "sequence": 32, "batches": [1]}}
    assert studies.study_settings(images, "throughput", "tiny") == {"batches": [1]}
    # pauses are measured at the named shape or the first of the model
    named = configured(**ASKED, idleness={"shape": {"sequence": 32, "batch": 1}})
    assert studies.study_settings(named, "idleness", "tiny")["shape"] == SHAPES[1]
    images = {**named, "models": OF_IMAGES, "shapes": [*SHAPES, IMAGE]}
    assert studies.study_settings(images, "idleness", "tiny")["shape"] == IMAGE


def test_what_is_wrong_is_said_in_one_line() -> None:
    for key, changes, words in (
        ("idleness", {"variants": ["cpu-openvino-fp23"]}, ".variants: cpu-openvino-fp23: no conf"),
        ("idleness", {"shape": {"batch": 2, "sequence": 32}}, ".shape = {batch: 2, sequence: 32}:"),
        ("idleness", {"pauses": [0]}, ".pauses (entry 1) = 0: 0 is less than or equal to the min"),
        ("idleness", {"pauses": []}, ".pauses = []"),
        ("throughput", {"variants": ["cpu-openvino-fp23"]}, ".variants: cpu-openvino-fp23: no con"),
        (
            "throughput",
            {"variants": ["cuda-pytorch-fp32"]},
            ".variants: cuda-pytorch-fp32: instances share the cores of a CPU; "
            "cuda: {streams: [2, 4]} measures throughput on a GPU",
        ),
        ("throughput", {"variants": [OPENVINO], "batches": [1, 8]}, ".batches = 8: beyond buckets"),
        ("throughput", {"variants": [OPENVINO], "sequence": 65}, ".sequence = 65: tiny takes at m"),
        ("throughput", {"instances": "many"}, ".instances = ['many']: must be 'auto' or array"),
        ("throughput", {"threads": [0]}, ".threads = [0]: must be 'auto' or array"),
        ("throughput", {"seconds": 0}, ".seconds = 0: 0 is less than or equal to the minimum of 0"),
    ):
        config = {**ASKED, "devices": ["cpu", "cuda"], key: {**ASKED.get(key, {}), **changes}}
        assert refused(**config).startswith(f"config: {key}{words}")
        # engines that take any shape may go beyond the buckets
        beyond = {"variants": ["cpu-pytorch-fp32"], "batches": [64], "sequence": 32}
        configured(**{**ASKED, "throughput": beyond})


def test_each_engine_whose_operators_or_kernels_are_timed_is_profiled_by_default() -> None:
    engines = {"compile": ["fp32"], "openvino": ["fp32"], "onnxruntime": ["fp32"]}
    keys = {**ASKED, "devices": ["cpu", "cuda"], "engines": engines, "models": {"tiny": MODEL}}
    plan = make_plan(configured(**keys, explain="verify"))
    of_cpu = ["cpu-pytorch-fp32", OPENVINO, "cpu-onnxruntime-fp32"]
    of_gpu = ["cuda-pytorch-fp32", "cuda-compile-fp32", "cuda-onnxruntime-fp32"]
    assert {str(variant) for _, variant in plan.measured["profile"]} == {*of_cpu, *of_gpu}
    assert [str(variant) for _, variant in plan.measured["causes"]] == of_cpu
    named = make_plan(configured(**keys, profile={"variants": [OPENVINO]}))
    assert [str(variant) for _, variant in named.measured["profile"]] == [OPENVINO]
    assert make_plan(configured(**keys, profile={"variants": []})).measured["profile"] == []


@pytest.mark.parametrize(("epochs", "measured"), [(2, ["trained"]), (0, [])])
def test_models_with_a_recipe_are_measured_but_no_students(epochs: int, measured: list) -> None:
    recipe = {"epochs": 9, "seed": 4, "validate": True, "device": "auto", "batch": 8}
    models = {
        "trained": {"train": recipe, "distill": None},
        "taken": {"train": None, "distill": None},
        "student": {"train": recipe, "distill": {"from": "trained"}},
    }
    config = {"training": {"epochs": epochs}, "models": models}
    assert studies.measured_trainings(config) == measured
    # a change of what the measurement sets itself reruns none
    own = studies.recipe_to_measure(config, "trained")
    assert own == {"device": "auto", "batch": 8}
