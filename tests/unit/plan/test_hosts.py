"""Where jobs run: devices, several kinds of nodes in one plan, and what belongs to each place."""

from typing import Any

import hosts as machines
import pytest
from configured import MODEL, configured, refused
from planned_jobs import job_of
from tightrope.errors import ConfigError
from tightrope.machine.host import describe_host
from tightrope.plan.hosts import constraint_of, prices_of, require_nodes
from tightrope.plan.job_inputs import engine_inputs
from tightrope.plan.job_params import engine_options
from tightrope.plan.plan import Plan, make_plan, raced, records
from tightrope.variants import parse

GENOA = {"constraint": "zen4", "isa": ["avx2", "avx512f", "avx512_vnni", "avx512_bf16"]}
ROME = {"constraint": "zen2", "isa": ["avx2"], "price": 0.9}
H100 = {"constraint": "h100", "devices": ["cuda"]}
ON_CPU = {"onnxruntime": ["fp32", "int8"], "openvino": ["bf16", "int8"], "inductor": ["int8"]}
ASKED: dict[str, Any] = {
    **{"hosts": {"genoa": GENOA, "rome": ROME, "h100": H100}, "models": {"m": MODEL}},
    **{"engines": {**ON_CPU, "tensorrt": ["fp16"]}, "calibration": {"samples": [64]}},
}


def whole(**changes: Any) -> dict[str, Any]:
    return configured(**{**ASKED, **changes})


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    return whole()


def plan_of(config: dict[str, Any]) -> Plan:
    return make_plan(config, machines.ARM)


def names_of(plan: Plan) -> list[str]:
    return [str(variant) for _, variant in plan.jobs]


def test_each_host_has_its_variants_and_the_first_what_is_done_once(config) -> None:
    plan = plan_of(config)
    names = names_of(plan)
    assert {name.partition("-")[0] for name in names} == {"cpu@genoa", "cpu@rome", "cuda@h100"}
    assert {"cpu@rome-pytorch-fp32", "cuda@h100-tensorrt-fp16"} <= {*names}
    job = job_of(config, plan, model="m", variant="cpu@rome-onnxruntime-fp32")
    assert str(job.baseline) == "cpu@rome-pytorch-fp32"
    finalists = [str(variant) for _, variant in raced(plan, ["m"], "cpu@genoa")]
    assert finalists == [name for name in names if name.startswith("cpu@genoa-")]
    assert "reports/m/cpu@rome.race.json" in records(plan)["m", "cpu@rome-pytorch-fp32"]
    # what is done once for all hosts is done on the first that has the device
    plan = plan_of(config)
    assert plan.host["cpu"] == plan.host["cpu@genoa"]
    assert plan.host["cuda"] == plan.host["cuda@h100"]
    model = {"m": {**config["models"]["m"], "train": {"device": "auto"}}}
    assert job_of({**config, "models": model}, model="m").place == "cuda"
    only = {**config, "hosts": {"h100": config["hosts"]["h100"]}}
    assert plan_of(only).host["cpu"] == "cuda@h100"
    assert constraint_of(only, None, "cpu") == "h100"


def test_what_a_precision_needs_is_looked_up_in_the_instructions_of_each_host(config) -> None:
    plan = plan_of(config)
    names = names_of(plan)
    assert [one for one in names if "openvino-bf16" in one] == ["cpu@genoa-openvino-bf16"]
    (reason,) = [why for _, name, why in plan.unavailable if name == "cpu@rome-openvino-bf16"]
    assert "no bf16 instructions" in reason
    # another float stands in for it there, and there alone
    assert [one for one in names if "openvino-fp32" in one] == ["cpu@rome-openvino-fp32"]
    for host, scheme in (("genoa", "u8s8"), ("rome", "u8s7")):
        onnxruntime, inductor = (
            parse(f"cpu@{host}-{engine}-int8-minmax-64") for engine in ("onnxruntime", "inductor")
        )
        source = engine_inputs(config, "m", onnxruntime)["source"]
        assert source == f"artifacts/m/quantized/{scheme}-minmax-64.onnx"
        assert engine_options(config, "m", inductor)["reduce_range"] is (scheme == "u8s7")
    # of nodes without `isa` nothing is known, not that of the machine that plans
    unknown = plan_of(whole(hosts={"a": {"constraint": "a"}}))
    assert "cpu@a-openvino-bf16" in names_of(unknown)


def test_a_job_is_sent_to_nodes_of_its_host_and_fails_on_others(config: dict[str, Any]) -> None:
    plan = plan_of(config)
    place = job_of(config, model="m", variant="cpu@genoa-onnxruntime-fp32").place
    assert place == job_of(config, model="m", device="cpu@genoa").place == "cpu@genoa"
    key = "cpu@genoa avx2 avx512f avx512_vnni avx512_bf16"
    assert (plan.host[place], plan.numerics[place]) == (key, key)
    assert plan.host["cuda@h100"] == "cuda@h100"
    found = [constraint_of(config, "default", one) for one in (place, "cuda@h100")]
    assert found == ["zen4", "h100"]


@pytest.mark.parametrize(
    ("device", "devices", "found"),
    [
        ("auto", ["cpu"], "cpu"),
        ("auto", ["cuda"], "cuda"),
        ("cpu", ["cuda"], "cpu"),
        ("cuda", ["cpu"], "cuda"),
        (None, ["cuda"], "cpu"),
        pytest.param(
            *("auto", "auto", "cpu"),
            marks=pytest.mark.skipif(describe_host()["gpu"] is not None, reason="there is a GPU"),
        ),
    ],
)
def test_a_model_is_trained_where_its_variants_are(device, devices, found) -> None:
    model = {"train": device and {"device": device}}
    where = {"host": "auto", "hosts": {}, "devices": devices, "models": {"m": model}}
    assert job_of(where, model="m").place == found


def test_the_price_of_a_host_stands_with_it() -> None:
    priced = whole(prices={"genoa": 2.5, "*": 1})
    assert prices_of(priced) == {"genoa": 2.5, "rome": 0.9, "*": 1}


def test_without_hosts_all_jobs_have_the_constraint_of_the_profile(config) -> None:
    none = whole(hosts={}, host="node", devices=["cpu"])
    assert [constraint_of(none, one, "cpu") for one in ("zen4", None)] == ["zen4", None]
    assert make_plan(none).host == {"cpu": "cpu@node", "cuda": "cuda@node"}
    # times hold for a host, numbers for all that compute alike
    plan = make_plan(configured(devices=["cpu"]), {**machines.AMX, "gpu": "NVIDIA H100"})
    assert plan.numerics["cpu"] != plan.host["cpu"] != plan.host["cuda"]
    # several hosts need an executor that sends jobs to nodes
    require_nodes(config, local=False)
    for own in ({"genoa": config["hosts"]["genoa"]}, {}):
        require_nodes({**config, "hosts": own}, local=True)
    with pytest.raises(ConfigError, match=r"hosts = genoa, rome, h100: .*profiles/slurm"):
        require_nodes(config, local=True)


def test_hosts_that_make_no_sense_are_one_line() -> None:
    for changes, words in (
        ({"host": "cpu-node"}, "host = cpu-node: there are hosts too"),
        ({"devices": ["cpu"]}, "devices: there are hosts, and each says its devices"),
        ({"prices": {"geno": 1}}, 'prices.geno: no host of that name; did you mean "genoa"?'),
        ({"traffic": {"variants": ["cpu@rom-pytorch-fp32"]}}, "traffic.variants: cpu@rom-pytorch"),
        ({"hosts": {"a-b": {"constraint": "a"}}}, "hosts"),
        ({"hosts": {"a": {}}}, "hosts.a: the key constraint is missing"),
        ({"hosts": {"a": {"constraint": "a", "isa": ["vnni"]}}}, "hosts.a.isa"),
        ({"hosts": {"a": {"constraint": "a", "devices": ["gpu"]}}}, "hosts.a.devices"),
        ({"hosts": {"a": {"constraint": "a", "price": 0}}}, "hosts.a.price"),
        ({"hosts": {"a": H100}, "engines": {"openvino": ["fp32"]}}, "devices = ['cuda']: no confi"),
    ):
        assert refused(**{**ASKED, **changes}).startswith(f"config: {words}")
