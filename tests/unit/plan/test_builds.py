"""A job that builds an engine again has the inputs and options of the rule that builds it."""

from pathlib import Path
from typing import Any

import pytest
from snakemake.iocontainers import Wildcards
from tightrope.measure.builds.sources import sources_of
from tightrope.plan.builds import build_inputs, build_libraries, build_options
from tightrope.plan.config import checked
from tightrope.plan.job_inputs import engine_inputs
from tightrope.plan.job_params import engine_options


@pytest.fixture(scope="module")
def config(repository: Path) -> Any:
    document = {
        **{"devices": ["cpu"], "emulated": True, "shapes": [{"batch": 1, "sequence": 32}]},
        "engines": {"openvino": ["fp32", "int8"], "inductor": ["int8"], "onnxruntime": ["int8"]},
        "models": {
            "tiny": {
                "checkpoint": "scratch:bert?max_position_embeddings=64",
                **{"data": "random", "max_sequence": 64},
            }
        },
    }
    return checked(document, repository / "config/schema.yaml")


@pytest.mark.parametrize(
    ("engine", "rest"),
    [
        ("pytorch", "fp32"),
        ("openvino", "fp32"),
        ("openvino", "int8-nncf-512"),
        ("inductor", "int8-minmax-512"),
        ("onnxruntime", "int8-minmax-512"),
    ],
)
def test_inputs_and_options_are_those_of_the_build(config: Any, engine: str, rest: str) -> None:
    names = {"model": "tiny", "variant": f"cpu-{engine}-{rest}"}
    variant = Wildcards(fromdict=names)
    rule = Wildcards(fromdict={"model": "tiny", "device": "cpu", "rest": rest})
    inputs = build_inputs(config, variant)
    assert all(name.startswith("build_") for name in inputs)
    others = {"engine": "a/engine.json", "data": "a/timing.json"}
    assert sources_of([*others.items(), *inputs.items()]) == engine_inputs(config, engine, rule)
    assert build_options(config, variant) == engine_options(config, engine, rule)
    assert None not in build_libraries(config, variant).values()
