"""Several kinds of nodes in one plan: each variant at each place, with what belongs to it there."""

from pathlib import Path
from typing import Any

import hosts as machines
import pytest
import yaml
from snakemake.iocontainers import Wildcards
from tightrope.errors import ConfigError
from tightrope.machine.host import ISA
from tightrope.plan import devices
from tightrope.plan.config import checked
from tightrope.plan.families import family_columns
from tightrope.plan.hosts import constraint_of, prices_of, require_nodes
from tightrope.plan.job_inputs import engine_inputs, peaks_of_variant, requests_of_variant
from tightrope.plan.job_params import engine_options
from tightrope.plan.plan import Plan, baseline_engine, make_plan, raced, records
from tightrope.plan.studies import device_to_train_on
from tightrope.variants import parse

GENOA = {"constraint": "zen4", "isa": ["avx2", "avx512f", "avx512_vnni", "avx512_bf16"]}
ROME = {"constraint": "zen2", "isa": ["avx2"], "price": 0.9}
H100 = {"constraint": "h100", "devices": ["cuda"]}
CHECKPOINT = "scratch:bert?max_position_embeddings=512"
HOSTS = {"genoa": GENOA, "rome": ROME, "h100": H100}


def configured(repository: Path, **changes: Any) -> dict[str, Any]:
    document = {
        "hosts": HOSTS,
        "models": {"m": {"checkpoint": CHECKPOINT, "data": "random"}},
        "engines": {
            "onnxruntime": ["fp32", "int8"],
            "openvino": ["bf16", "int8"],
            "inductor": ["int8"],
            "tensorrt": ["fp16"],
        },
        "calibration": {"samples": [64]},
        **changes,
    }
    return checked(document, repository / "config/schema.yaml")


@pytest.fixture
def config(repository: Path) -> dict[str, Any]:
    return configured(repository)


def plan_of(config: dict[str, Any]) -> Plan:
    return make_plan(config, machines.ARM)


def of(variant: str) -> Wildcards:
    return Wildcards(fromdict={"model": "m", "variant": variant})


def at(place: str, rest: str = "") -> Wildcards:
    return Wildcards(fromdict={"model": "m", "device": place, "rest": rest})


def test_each_host_has_the_variants_of_its_devices_and_its_own_baseline(
    config: dict[str, Any],
) -> None:
    plan = plan_of(config)
    names = [str(variant) for _, variant in plan.jobs]
    assert {name.partition("-")[0] for name in names} == {"cpu@genoa", "cpu@rome", "cuda@h100"}
    assert {"cpu@genoa-pytorch-fp32", "cpu@rome-pytorch-fp32", "cuda@h100-tensorrt-fp16"} <= {
        *names
    }
    assert baseline_engine(plan, of("cpu@rome-onnxruntime-fp32")) == (
        "artifacts/m/engines/cpu@rome-pytorch-fp32/engine.json"
    )
    finalists = raced(plan, "{variant}", at("cpu@genoa"))
    assert finalists == [name for name in names if name.startswith("cpu@genoa-")]
    assert "reports/m/cpu@rome.race.json" in records(plan)["m", "cpu@rome-pytorch-fp32"]


def test_a_host_without_the_instructions_of_a_precision_does_not_emulate_it(
    config: dict[str, Any],
) -> None:
    plan = plan_of(config)
    names = [str(variant) for _, variant in plan.jobs]
    assert [one for one in names if "openvino-bf16" in one] == ["cpu@genoa-openvino-bf16"]
    (reason,) = [why for _, name, why in plan.unavailable if name == "cpu@rome-openvino-bf16"]
    assert "no bf16 instructions" in reason
    # another float stands in for it there, and there alone
    assert [one for one in names if "openvino-fp32" in one] == ["cpu@rome-openvino-fp32"]


def test_a_reduced_range_follows_the_instructions_of_each_host(config: dict[str, Any]) -> None:
    for host, scheme in (("genoa", "u8s8"), ("rome", "u8s7")):
        asked = at(f"cpu@{host}", "int8-minmax-64")
        source = engine_inputs(config, "onnxruntime", asked)["source"]
        assert source == f"artifacts/m/quantized/{scheme}-minmax-64.onnx"
        reduced = engine_options(config, "inductor", asked)["reduce_range"]
        assert reduced is (scheme == "u8s7")


def test_what_a_host_can_is_not_that_of_the_machine_that_plans(repository: Path) -> None:
    config = configured(repository, hosts={"a": {"constraint": "a"}})
    assert "cpu@a-openvino-bf16" in [str(one) for _, one in plan_of(config).jobs]


def test_a_job_is_sent_to_nodes_of_its_host_and_fails_on_others(config: dict[str, Any]) -> None:
    plan, default = plan_of(config), "first"
    variant = of("cpu@genoa-onnxruntime-fp32")
    assert devices.constraint_of_variant(config, default, variant) == "zen4"
    assert devices.constraint_of_device(config, default, at("cuda@h100")) == "h100"
    assert devices.gpus_of_device(at("cuda@h100")) == 1
    assert devices.gpus_of_device(at("cpu@genoa")) == 0
    key = "cpu@genoa avx2 avx512f avx512_vnni avx512_bf16"
    assert devices.host_of_variant(plan, variant) == key
    assert devices.numerics_of_variant(plan, variant) == key
    assert plan.host["cuda@h100"] == "cuda@h100"
    assert peaks_of_variant(variant) == "artifacts/machine/cpu@genoa.peaks.json"
    assert requests_of_variant(variant) == "artifacts/m/cpu@genoa.requests.json"


def test_what_is_done_once_for_all_hosts_is_done_on_the_first_that_has_the_device(
    config: dict[str, Any],
) -> None:
    plan = plan_of(config)
    assert plan.host["cpu"] == plan.host["cpu@genoa"]
    assert plan.host["cuda"] == plan.host["cuda@h100"]
    config["models"]["m"]["train"] = {"device": "auto"}
    assert device_to_train_on(config, "m") == "cuda"
    assert devices.constraint_of_training(config, None, at("cpu")) == "h100"
    only = {**config, "hosts": {"h100": config["hosts"]["h100"]}}
    assert plan_of(only).host["cpu"] == "cuda@h100"
    assert constraint_of(only, None, "cpu") == "h100"


def test_without_hosts_all_jobs_have_the_constraint_of_the_profile(repository: Path) -> None:
    config = configured(repository, hosts={}, host="node", devices=["cpu"])
    assert constraint_of(config, "zen4", "cpu") == "zen4"
    assert constraint_of(config, None, "cpu") is None
    assert make_plan(config).host == {"cpu": "cpu@node", "cuda": "cuda@node"}


def test_a_variant_that_is_named_without_a_host_is_that_of_every_host(repository: Path) -> None:
    both = configured(repository, traffic={"variants": ["cpu-onnxruntime-fp32"]})
    one = configured(repository, traffic={"variants": ["cpu@rome-onnxruntime-fp32"]})
    found = [[str(variant) for _, variant in plan_of(each).traffic] for each in (both, one)]
    assert found == [
        ["cpu@genoa-onnxruntime-fp32", "cpu@rome-onnxruntime-fp32"],
        ["cpu@rome-onnxruntime-fp32"],
    ]
    with pytest.raises(ConfigError, match=r"traffic\.variants: cpu@rom-onnxruntime-fp32"):
        configured(repository, traffic={"variants": ["cpu@rom-onnxruntime-fp32"]})


def test_the_families_of_each_place_race_apart(repository: Path) -> None:
    models = {
        "m": {"checkpoint": CHECKPOINT, "data": "random"},
        "small": {"from": "m", "prune": {"layers": 1}},
    }
    config = configured(repository, models=models)
    variants = [parse(f"cpu@{host}-pytorch-fp32") for host in ("genoa", "rome")]
    found = family_columns(config, [(name, one) for name in models for one in variants])
    assert found == {"model": ["m", "m"], "device": ["cpu@genoa", "cpu@rome"]}


def test_the_price_of_a_host_stands_with_it(repository: Path) -> None:
    config = configured(repository, prices={"genoa": 2.5, "*": 1})
    assert prices_of(config) == {"genoa": 2.5, "rome": 0.9, "*": 1}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"host": "cpu-node"}, "config: host = cpu-node: there are hosts too"),
        ({"devices": ["cpu"]}, "config: devices: there are hosts, and each says its devices"),
        (
            {"prices": {"geno": 1}},
            'config: prices.geno: no host of that name; did you mean "genoa"?',
        ),
        ({"hosts": {"a-b": {"constraint": "a"}}}, "config: hosts"),
        ({"hosts": {"a": {}}}, "config: hosts.a: the key constraint is missing"),
        ({"hosts": {"a": {"constraint": "a", "isa": ["vnni"]}}}, "config: hosts.a.isa"),
        ({"hosts": {"a": {"constraint": "a", "devices": ["gpu"]}}}, "config: hosts.a.devices"),
        ({"hosts": {"a": {"constraint": "a", "price": 0}}}, "config: hosts.a.price"),
        (
            {"hosts": {"a": H100}, "engines": {"openvino": ["fp32"]}},
            "no configured engine has one of its precisions on cuda",
        ),
    ],
)
def test_hosts_that_make_no_sense_are_one_line(
    repository: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        configured(repository, **changes)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_several_hosts_need_an_executor_that_sends_jobs_to_nodes(config: dict[str, Any]) -> None:
    require_nodes(config, local=False)
    require_nodes({**config, "hosts": {"genoa": config["hosts"]["genoa"]}}, local=True)
    require_nodes({**config, "hosts": {}}, local=True)
    with pytest.raises(ConfigError, match=r"hosts = genoa, rome, h100: .*profiles/slurm"):
        require_nodes(config, local=True)


def test_the_instruction_sets_of_the_schema_are_those_that_a_host_is_described_by(
    repository: Path,
) -> None:
    schema = yaml.safe_load((repository / "config/schema.yaml").read_text())
    isa = schema["properties"]["hosts"]["additionalProperties"]["properties"]["isa"]
    assert isa["anyOf"][1]["items"]["enum"] == list(ISA)
