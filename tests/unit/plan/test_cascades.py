"""Which models a cascade serves, in which variants, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from hosts import AVX2
from snakemake.iocontainers import Wildcards
from tightrope.errors import ConfigError
from tightrope.plan.announce import cascade_lines
from tightrope.plan.cascades import cascade_inputs, cascade_settings
from tightrope.plan.config import checked
from tightrope.plan.plan import make_plan
from tightrope.plan.records import records

MODEL = {"checkpoint": "scratch:bert?max_position_embeddings=64", "data": "random"}
PAIR: dict[str, Any] = {"small": "tiny", "large": "big", "agreement": 0.95}
OPENVINO = "cpu-openvino-fp32"
FAST = Wildcards(fromdict={"cascade": "fast"})


def configured(repository: Path, cascade: dict[str, Any] | None, **changes: Any) -> Any:
    model = {**MODEL, "max_sequence": 32}
    document = {
        "devices": ["cpu"],
        "emulated": True,
        "shapes": [{"batch": 4, "sequence": 32}],
        "engines": {"openvino": ["fp32", "bf16", "int8"], "onnxruntime": ["int8"]},
        "calibration": {"methods": ["minmax", "nncf"], "samples": [8], "pool": 32},
        "models": {"tiny": model, "big": {**model, **changes}},
        "cascades": {} if cascade is None else {"fast": cascade},
    }
    return checked(document, repository / "config/schema.yaml")


def test_none_is_measured_by_default(repository: Path) -> None:
    assert make_plan(configured(repository, None)).cascades == {}


def test_a_calibrated_variant_of_openvino_is_taken_where_none_is_named(repository: Path) -> None:
    config = configured(repository, PAIR)
    plan = make_plan(config)
    members = [(model, str(variant)) for model, variant in plan.cascades["fast"]]
    assert members == [(name, "cpu-openvino-int8-nncf-8") for name in ("tiny", "big")]
    assert records(plan)["fast", "cascade"] == ["reports/fast.cascade.json"]
    assert cascade_settings(config, FAST) == {**{"agreement": 0.95, "batch": 4, "traffic": None}}
    config["cascades"]["fast"]["traffic"] = True
    applied = cascade_settings(config, FAST)["traffic"]
    assert set(applied) == {"scenarios", "batch", "seconds", "p99_bound_s"}


def test_the_job_reads_both_engines_and_the_data_of_the_large_model(repository: Path) -> None:
    plan = make_plan(configured(repository, {**PAIR, "variants": {"small": OPENVINO}}))
    found = cascade_inputs(plan, FAST)
    assert found["small_engine"] == f"artifacts/tiny/engines/{OPENVINO}/engine.json"
    assert found["large_engine"].startswith("artifacts/big/engines/cpu-openvino-int8")
    assert found["evaluation"] == "artifacts/big/splits/evaluation.json"
    assert len(found) == 6


def test_a_cascade_whose_variant_cannot_run_here_is_left_out_with_a_line(repository: Path) -> None:
    bf16 = {**PAIR, "variants": {"large": "cpu-openvino-bf16"}}
    config = {**configured(repository, bf16), "emulated": False}
    plan = make_plan(config, AVX2)
    assert plan.cascades == {}
    (line,) = cascade_lines(config, plan)
    assert line.startswith("cascades.fast: left out, because cpu-openvino-bf16 cannot run here")
    whole = configured(repository, PAIR)
    assert list(cascade_lines(whole, make_plan(whole))) == []


@pytest.mark.parametrize(
    ("cascade", "changes", "message"),
    [
        ({"small": "tony"}, {}, "cascades.fast.small = tony: no model of that name; did you mean"),
        ({"small": "big"}, {}, "cascades.fast: small and large are both big"),
        ({}, {"seed": 7}, "cascades.fast: tiny has seed = 0, big has 7"),
        ({"agreement": None}, {}, "random data have no labels"),
        (
            {"variants": {"large": "cpu-openvino-fp23"}},
            {},
            f'no configured variant of big; did you mean "{OPENVINO}"',
        ),
        ({"batch": 64}, {}, "cascades.fast.batch = 64: beyond buckets.batch"),
        (
            {"traffic": True},
            {},
            "traffic.batch = 32: beyond buckets.batch = [1, 4], which the engines",
        ),
        ({"agreement": 1.5}, {}, "cascades.fast.agreement = 1.5"),
        ({"budget": 1}, {}, "cascades.fast.budget: unknown key"),
    ],
)
def test_what_cannot_be_served_as_one_is_refused(
    repository: Path, cascade: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        configured(repository, {**PAIR, **cascade}, **changes)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
