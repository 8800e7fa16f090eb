"""Whose throughput is measured, with which settings, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from snakemake.iocontainers import Wildcards
from tightrope.errors import ConfigError
from tightrope.plan.config import checked
from tightrope.plan.plan import make_plan, records
from tightrope.plan.studies import throughput_settings
from tightrope.plan.wildcards import columns

MODEL = {"checkpoint": "scratch:bert?max_position_embeddings=64", "data": "random"}
OPENVINO = "cpu-openvino-fp32"


def configured(repository: Path, devices: list[str] | None = None, **throughput: Any) -> Any:
    document = {
        "devices": devices or ["cpu"],
        "emulated": True,
        "shapes": [{"batch": 4, "sequence": 32}],
        "engines": {"openvino": ["fp32"], "pytorch": ["fp32"]},
        "models": {"tiny": {**MODEL, "max_sequence": 64}, "other": {**MODEL, "max_sequence": 64}},
        "throughput": {"batches": [1, 4], "sequence": 32, **throughput},
    }
    return checked(document, repository / "config/schema.yaml")


def test_nothing_is_measured_by_default(repository: Path) -> None:
    config = configured(repository)
    assert config["throughput"]["variants"] == []
    assert make_plan(config).throughput == []


def test_each_model_with_the_variant_has_a_record(repository: Path) -> None:
    plan = make_plan(configured(repository, variants=[OPENVINO]))
    assert columns(plan.throughput) == {"model": ["tiny", "other"], "variant": [OPENVINO] * 2}
    paths = [path for paths in records(plan).values() for path in paths if ".throughput." in path]
    assert paths == [f"reports/{name}/{OPENVINO}.throughput.json" for name in ("tiny", "other")]


def test_the_variants_are_no_setting_of_a_job(repository: Path) -> None:
    config = configured(repository, variants=[OPENVINO], p99_ms=50)
    settings = throughput_settings(config, Wildcards(fromdict={"model": "tiny"}))
    assert settings == {
        "batches": [1, 4],
        "sequence": 32,
        "instances": "auto",
        "threads": "auto",
        "p99_ms": 50,
        "seconds": 2.0,
        "max_seconds": 300,
    }


def test_images_have_no_sequence() -> None:
    config = {
        "models": {"m": {"task": "image-classification"}},
        "throughput": {"variants": [], "sequence": 32, "batches": [1]},
    }
    assert throughput_settings(config, Wildcards(fromdict={"model": "m"})) == {"batches": [1]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"variants": ["cpu-openvino-fp23"]},
            "throughput.variants: cpu-openvino-fp23: no configured variant; did you mean "
            '"cpu-openvino-fp32"?',
        ),
        (
            {"variants": ["cuda-pytorch-fp32"], "devices": ["cpu", "cuda"]},
            "throughput.variants: cuda-pytorch-fp32: instances share the cores of a CPU; "
            "cuda: {streams: [2, 4]} measures throughput on a GPU",
        ),
        (
            {"variants": [OPENVINO], "batches": [1, 8]},
            "throughput.batches = 8: beyond buckets.batch = [1, 4]; give buckets that hold it, or "
            "take a smaller one",
        ),
        (
            {"variants": [OPENVINO], "sequence": 65},
            "throughput.sequence = 65: tiny takes at most 64 tokens",
        ),
        (
            {"instances": "many"},
            "throughput.instances = ['many']: must be 'auto' or array",
        ),
        ({"threads": [0]}, "throughput.threads = [0]: must be 'auto' or array"),
        ({"seconds": 0}, "throughput.seconds = 0: 0 is less than or equal to the minimum of 0"),
        ({"bathces": [1]}, 'throughput.bathces: unknown key; did you mean "batches"?'),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    repository: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        configured(repository, **changes)
    assert str(refused.value).startswith(f"config: {words}")


def test_engines_that_take_any_shape_may_go_beyond_the_buckets(repository: Path) -> None:
    config = configured(repository, variants=["cpu-pytorch-fp32"], batches=[64])
    assert config["throughput"]["batches"] == [64]


def test_one_number_in_the_place_of_a_list_is_a_list_of_it(repository: Path) -> None:
    asked = configured(repository, instances=2, threads=1, batches=4)["throughput"]
    assert (asked["instances"], asked["threads"], asked["batches"]) == ([2], [1], [4])
