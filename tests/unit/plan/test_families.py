"""Which models are a family, and the files of the job that times it."""

from types import SimpleNamespace
from typing import Any

from tightrope.plan.families import (
    children_of,
    families,
    family_columns,
    family_records,
    members_of,
    of_members,
    of_variants,
)
from tightrope.plan.wildcards import by_place
from tightrope.variants import parse

EAGER, INT8 = parse("cpu-pytorch-fp32"), parse("cpu-openvino-int8-nncf-8")
ON_GPU = parse("cuda-pytorch-fp32")
MODELS: dict[str, Any] = {
    "small": {"from": "large"},
    "tiny": {"from": "small"},
    "large": {"checkpoint": "scratch:bert", "from": None},
    "narrow": {"from": "large"},
    "alone": {"checkpoint": "scratch:bert"},
}
CONFIG = {"models": MODELS}
JOBS = [(model, variant) for model in MODELS for variant in (EAGER, INT8)]
OF_LARGE = SimpleNamespace(model="large", device="cpu")


def test_after_each_model_come_those_that_start_from_it() -> None:
    assert members_of(children_of(CONFIG), "large") == ["large", "small", "tiny", "narrow"]


def test_a_root_is_timed_with_its_descendants_on_each_device_that_several_run_on() -> None:
    assert families(CONFIG, JOBS) == [("large", "cpu")]
    assert families(CONFIG, [*JOBS, ("tiny", ON_GPU)]) == [("large", "cpu")]
    both = [*JOBS, ("tiny", ON_GPU), ("large", ON_GPU)]
    assert families(CONFIG, both) == [("large", "cpu"), ("large", "cuda")]
    assert family_columns(CONFIG, JOBS) == {"model": ["large"], "device": ["cpu"]}
    assert family_records(CONFIG, JOBS) == {("large", "cpu"): ["reports/large/cpu.family.json"]}


def test_without_a_derived_model_there_is_no_family() -> None:
    models = {"models": {name: MODELS[name] for name in ("large", "alone")}}
    assert families(models, JOBS) == []


def test_its_job_reads_the_files_of_all_members_on_the_device_and_of_no_other_model() -> None:
    variants = by_place([*JOBS, ("large", ON_GPU)])
    path = "reports/{model}/{variant}.latency.json"
    assert of_variants(children_of(CONFIG), variants, path, OF_LARGE) == [
        f"reports/{model}/{variant}.latency.json"
        for model in ("large", "small", "tiny", "narrow")
        for variant in (EAGER, INT8)
    ]
    assert of_members(children_of(CONFIG), variants, "{model}-{device}", OF_LARGE) == [
        "large-cpu",
        "small-cpu",
        "tiny-cpu",
        "narrow-cpu",
    ]
    on_gpu = SimpleNamespace(model="large", device="cuda")
    assert of_members(children_of(CONFIG), variants, "{model}-{device}", on_gpu) == ["large-cuda"]
