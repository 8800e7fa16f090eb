import subprocess
import sys
from pathlib import Path
from typing import Any

import hosts
import pytest
import torch
import yaml
from snakemake.iocontainers import Wildcards
from tightrope.engine_table import ENGINES
from tightrope.machine.host import describe_host, fingerprint, for_device, numerics_fingerprint
from tightrope.measure.profile import PROFILERS
from tightrope.plan.columns import by_place, columns, race_columns, search_columns
from tightrope.plan.config import checked
from tightrope.plan.job_inputs import (
    audit_input,
    counted_inputs,
    engine_inputs,
    quantize_inputs,
    training_examples,
)
from tightrope.plan.job_params import (
    deciding_sizes,
    engine_libraries,
    engine_options,
    latency_settings,
    libraries_of,
    limits_of,
    streams_of,
)
from tightrope.plan.plan import (
    Plan,
    audited,
    baseline_engine,
    baseline_of,
    make_plan,
    raced,
    unavailable_reason,
    variant_suffixes,
)
from tightrope.plan.profiled import ENGINES as PROFILED
from tightrope.plan.records import failing_files, onnx_files, records
from tightrope.signature import IMAGE
from tightrope.variants import UNQUANTIZED, Variant, parse

MODEL = {"checkpoint": "scratch:bert?max_position_embeddings=512", "data": "random"}
NO_GPU, GPU = hosts.AVX2, {**hosts.AVX2, "gpu": "NVIDIA H100"}
ASKED = {
    **{"devices": "auto", "host": "auto", "hosts": {}, "emulated": False},
    "onnxruntime": {"provider": "cuda"},
}
SESSION = {
    "fusions": False,
    "attention_operator": False,
    "optimization": "all",
    "spinning": True,
    "arena": True,
}
NO_BF16 = "not supported by this CPU: no bf16 instructions; it would be emulated"
NO_CHECKPOINT = "no checkpoint: the model is an ONNX file"
CHECKPOINT = "artifacts/m/checkpoint/checkpoint.json"
ONNX = "artifacts/m/model.simplified.onnx"


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of PATH, in it a compiler."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "g++").write_text("#!/bin/sh\n")
    (folder / "g++").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CXX", raising=False)
    return folder


def plan_of(config: dict[str, Any], host: dict[str, Any] = hosts.AMX) -> Plan:
    return make_plan(config, host)


@pytest.fixture
def config(repository: Path) -> dict[str, Any]:
    """Model m with a checkpoint, model n that is an ONNX file only."""
    asked = {
        "models": {"m": MODEL},
        "engines": {
            "pytorch": ["bf16"],
            "compile": ["fp32"],
            "onnxruntime": ["int8"],
            "openvino": ["fp32", "int8"],
        },
        "calibration": {"samples": [64], "reduce_range": False},
        "shapes": [{"batch": 4, "sequence": 64}],
    }
    filled = checked({**asked, "devices": ["cpu"]}, repository / "config/schema.yaml")
    filled["models"]["n"] = {**filled["models"]["m"], "checkpoint": "onnx:n.onnx"}
    return filled


def jobs_of(plan: Plan, model: str) -> list[str]:
    return [str(variant) for name, variant in plan.jobs if name == model]


def reasons_of(plan: Plan, model: str) -> dict[str, str]:
    return {variant: reason for name, variant, reason in plan.unavailable if name == model}


def job(model: str, variant: str) -> Wildcards:
    """The wildcards of a job that measures a variant."""
    return Wildcards(fromdict={"model": model, "variant": variant})


def wildcards(variant: Variant, model: str = "m") -> Wildcards:
    """What Snakemake reads in the path of that variant's engine."""
    names = {"model": model, "device": variant.place, "rest": variant.rest}
    return Wildcards(fromdict=names)


def inputs_of(config: dict[str, Any], variant: str, model: str = "m") -> dict[str, str]:
    one = parse(variant)
    return engine_inputs(config, one.engine, wildcards(one, model))


def options_of(config: dict[str, Any], engine: str, model: str = "m") -> dict[str, Any]:
    return engine_options(config, engine, wildcards(Variant("cpu", engine, "fp32"), model))


def test_a_model_with_a_checkpoint_has_a_job_for_every_variant(config: dict[str, Any]) -> None:
    plan = plan_of(config)
    assert plan.models == ["m", "n"]
    assert jobs_of(plan, "m") == [
        "cpu-pytorch-fp32",
        "cpu-pytorch-bf16",
        "cpu-compile-fp32",
        "cpu-onnxruntime-int8-minmax-64",
        "cpu-openvino-fp32",
        "cpu-openvino-int8-nncf-64",
    ]
    assert reasons_of(plan, "m") == {}


def test_a_model_that_is_an_onnx_file_only_has_none_that_needs_a_checkpoint(
    config: dict[str, Any],
) -> None:
    plan = plan_of(config)
    assert jobs_of(plan, "n") == [
        "cpu-onnxruntime-fp32",
        "cpu-onnxruntime-int8-minmax-64",
        "cpu-openvino-fp32",
        "cpu-openvino-int8-nncf-64",
    ]
    assert reasons_of(plan, "n") == {
        "cpu-pytorch-bf16": NO_CHECKPOINT,
        "cpu-compile-fp32": NO_CHECKPOINT,
    }


def test_each_model_and_device_has_the_baseline_of_its_source(config: dict[str, Any]) -> None:
    plan = plan_of(config)
    assert plan.baselines == {
        "m": {"cpu": "cpu-pytorch-fp32", "cuda": "cuda-pytorch-fp32"},
        "n": {"cpu": "cpu-onnxruntime-fp32", "cuda": "cuda-onnxruntime-fp32"},
    }
    for model in plan.models:
        assert plan.baselines[model]["cpu"] in jobs_of(plan, model)


def test_a_variant_and_its_baseline_are_compared_with_the_baseline(config: dict[str, Any]) -> None:
    plan = plan_of(config)
    for variant in ("cpu-openvino-fp32", "cpu-onnxruntime-fp32"):
        assert baseline_of(plan, job("m", variant)) == "cpu-pytorch-fp32"
        assert baseline_of(plan, job("n", variant)) == "cpu-onnxruntime-fp32"
    assert baseline_of(plan, job("m", "cuda-pytorch-bf16")) == "cuda-pytorch-fp32"
    found = baseline_engine(plan, job("n", "cpu-openvino-fp32"))
    assert found == "artifacts/n/engines/cpu-onnxruntime-fp32/engine.json"


def test_what_cannot_run_here_is_unavailable_with_its_reason(config: dict[str, Any]) -> None:
    plan = plan_of({**config, "devices": "auto", "engines": {"tensorrt": ["fp16"]}})
    assert jobs_of(plan, "m") == ["cpu-pytorch-fp32"]
    assert jobs_of(plan, "n") == ["cpu-onnxruntime-fp32"]
    reasons = {model: reasons_of(plan, model) for model in plan.models}
    assert set(reasons["m"]) == {"cuda-pytorch-fp32", "cuda-tensorrt-fp16"}
    assert set(reasons["n"]) == {"cuda-onnxruntime-fp32", "cuda-tensorrt-fp16"}
    assert {why for found in reasons.values() for why in found.values()} == {"no NVIDIA GPU"}


def test_every_variant_is_either_a_job_or_unavailable(config: dict[str, Any]) -> None:
    every = {name: list(engine.precisions.get("cpu", ())) for name, engine in ENGINES.items()}
    plan = plan_of({**config, "devices": "auto", "engines": {**every, "tensorrt": ["fp16"]}})
    for model in plan.models:
        jobs, reasons = jobs_of(plan, model), reasons_of(plan, model)
        assert not set(jobs) & set(reasons)
        assert len(jobs) == len(set(jobs))
        assert {parse(name).engine for name in [*jobs, *reasons]} == set(ENGINES)


def test_without_a_compiler_only_the_engines_that_need_one_are_unavailable(
    config: dict[str, Any], programs: Path
) -> None:
    asked = {"compile": ["fp32"], "inductor": ["fp32"], "torchscript": ["fp32"], "tvm": ["fp32"]}
    config["engines"] = asked
    compiled = {"cpu-compile-fp32", "cpu-inductor-fp32", "cpu-tvm-fp32"}
    assert set(jobs_of(plan_of(config), "m")) > compiled
    (programs / "g++").unlink()
    plan = plan_of(config)
    assert jobs_of(plan, "m") == ["cpu-pytorch-fp32", "cpu-torchscript-fp32"]
    reasons = reasons_of(plan, "m")
    assert set(reasons) == compiled
    assert all(why.startswith("no C++ compiler: ") for why in reasons.values())


def test_of_images_the_variants_of_tvm_are_unavailable(config: dict[str, Any]) -> None:
    config["engines"] = {"torchscript": ["fp32"], "tvm": ["fp32"]}
    config["models"]["m"]["task"] = IMAGE
    config["shapes"] = [{"batch": 4, "height": 8, "width": 8}]
    plan = plan_of(config)
    assert jobs_of(plan, "m") == ["cpu-pytorch-fp32", "cpu-torchscript-fp32"]
    assert reasons_of(plan, "m") == {"cpu-tvm-fp32": "TVM compiles text models only"}


@pytest.mark.parametrize(
    ("variant", "host", "source", "reason"),
    [
        ("cpu-pytorch-fp32", NO_GPU, "path:m", None),
        ("cpu-onnxruntime-fp32", GPU, "onnx:m.onnx", None),
        ("cpu-pytorch-fp32", NO_GPU, "onnx:m.onnx", NO_CHECKPOINT),
        ("cuda-pytorch-fp32", GPU, "onnx:m.onnx", NO_CHECKPOINT),
        ("cuda-onnxruntime-fp32", NO_GPU, "onnx:m.onnx", "no NVIDIA GPU"),
        ("cuda-pytorch-fp32", NO_GPU, "path:m", "no NVIDIA GPU"),
        ("cpu-pytorch-bf16", NO_GPU, "path:m", NO_BF16),
        ("cpu-pytorch-bf16", NO_GPU, "onnx:m.onnx", NO_CHECKPOINT),
        ("cpu-inductor-bf16", hosts.AVX512, "path:m", NO_BF16),
        ("cpu-pytorch-bf16", hosts.ARM, "path:m", None),
    ],
)
def test_the_first_thing_that_is_missing_is_the_reason(
    variant: str, host: dict[str, Any], source: str, reason: str | None
) -> None:
    model = {"checkpoint": source, "task": "text-classification"}
    assert unavailable_reason(ASKED, parse(variant), host, model) == reason


@pytest.mark.parametrize(
    ("variant", "package"),
    [
        pytest.param(
            "cuda-pytorch-fp32",
            "PyTorch without CUDA",
            marks=pytest.mark.skipif(bool(torch.version.cuda), reason="PyTorch has CUDA"),
        ),
        ("cuda-onnxruntime-fp32", "no onnxruntime-gpu"),
        ("cuda-tensorrt-fp16", "no tensorrt"),
    ],
)
def test_with_a_gpu_what_is_not_installed_is_unavailable_and_named(
    variant: str, package: str
) -> None:
    model = {"checkpoint": "path:m", "task": "text-classification"}
    reason = unavailable_reason(ASKED, parse(variant), GPU, model)
    assert reason == f"{package}: install what envs/gpu.txt names"


def test_the_tensorrt_provider_runs_two_precisions_with_profiles_and_without_graphs(
    config: dict[str, Any],
) -> None:
    config |= {"devices": ["cuda"], "onnxruntime": {**SESSION, "provider": "tensorrt"}}
    config["engines"] = {"onnxruntime": ["fp32", "fp16", "int8"]}
    plan = plan_of(config)
    on_gpu = {name for name in jobs_of(plan, "m") if name.startswith("cuda-onnxruntime")}
    assert on_gpu == {"cuda-onnxruntime-fp32", "cuda-onnxruntime-fp16"}
    assert reasons_of(plan, "m") == {
        "cuda-onnxruntime-int8-minmax-64": "ONNX Runtime's TensorRT provider has fp32, fp16 only"
    }
    variant = parse("cuda-onnxruntime-fp16")
    own = engine_options(config, "onnxruntime", wildcards(variant))
    profiles = [[[1, 1], [4, 64], [4, 128]]]
    assert own == {**SESSION, "provider": "tensorrt", "profiles": profiles}
    config["onnxruntime"]["provider"] = "cuda"
    own = engine_options(config, "onnxruntime", wildcards(variant))
    assert own == {**SESSION, "provider": "cuda", "graphs": True, "buckets": own["buckets"]}
    assert options_of(config, "onnxruntime") == SESSION


def test_a_gpu_that_is_asked_for_outright_is_planned_without_one(config: dict[str, Any]) -> None:
    plan = plan_of({**config, "devices": ["cuda"], "engines": {"tensorrt": ["fp16"]}})
    assert jobs_of(plan, "m") == ["cuda-pytorch-fp32", "cuda-tensorrt-fp16"]
    assert jobs_of(plan, "n") == ["cuda-onnxruntime-fp32", "cuda-tensorrt-fp16"]
    assert reasons_of(plan, "m") == {}


@pytest.fixture
def default(repository: Path) -> dict[str, Any]:
    """The configuration that a first run has, on the CPU."""
    asked = yaml.safe_load((repository / "config/config.yaml").read_text())
    return checked({**asked, "devices": ["cpu"]}, repository / "config/schema.yaml")


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("AVX2", {"pytorch-bf16", "openvino-bf16", "openvino-int8-bf16-nncf-512"}),
        ("AVX-512", {"pytorch-bf16", "openvino-bf16", "openvino-int8-bf16-nncf-512"}),
        ("AMX", set()),
        ("ARM", {"openvino-bf16", "openvino-int8-bf16-nncf-512"}),
    ],
)
def test_the_default_run_leaves_out_what_a_cpu_of_its_kind_only_emulates(
    default: dict[str, Any], kind: str, missing: set[str]
) -> None:
    (model,) = default["models"]
    plan = plan_of(default, hosts.HOSTS[kind])
    assert set(reasons_of(plan, model)) == {f"cpu-{name}" for name in missing}
    assert all("no bf16 instructions" in why for why in reasons_of(plan, model).values())
    everything = plan_of({**default, "emulated": True}, hosts.HOSTS[kind])
    assert reasons_of(everything, model) == {}
    assert missing <= {name.removeprefix("cpu-") for name in jobs_of(everything, model)}


@pytest.mark.parametrize("kind", hosts.HOSTS)
def test_the_default_run_may_race_openvino_quantized_with_a_float_of_its_own_on_every_cpu(
    default: dict[str, Any], kind: str
) -> None:
    (model,) = default["models"]
    place = Wildcards(fromdict={"model": model, "device": "cpu"})
    variants = map(parse, raced(plan_of(default, hosts.HOSTS[kind]), "{variant}", place))
    own = [one for one in variants if one.engine == "openvino"]
    floats = {str(one) for one in own if one.precision in UNQUANTIZED}
    assert floats == {"cpu-openvino-bf16" if kind == "AMX" else "cpu-openvino-fp32"}
    assert len(own) > len(floats)


def test_of_the_nodes_of_a_named_host_this_machine_knows_nothing(default: dict[str, Any]) -> None:
    (model,) = default["models"]
    plan = plan_of({**default, "host": "node-type"}, hosts.AVX2)
    assert reasons_of(plan, model) == {}


def test_the_default_configuration_takes_any_list_of_devices(
    default: dict[str, Any], repository: Path
) -> None:
    (model,) = default["models"]
    for devices in (["cuda"], ["cpu", "cuda"], ["cpu"]):
        filled = checked({**default, "devices": devices}, repository / "config/schema.yaml")
        planned = jobs_of(plan_of(filled), model)
        assert {name.partition("-")[0] for name in planned} == set(devices)
        assert ("cuda-tensorrt-fp16" in planned) == ("cuda" in devices)


def test_traffic_is_measured_of_the_models_that_have_the_variant(config: dict[str, Any]) -> None:
    names = ["cpu-pytorch-bf16", "cpu-openvino-fp32"]
    config["traffic"] = {**config["traffic"], "variants": names}
    plan = plan_of(config)
    assert columns(plan.traffic) == {
        "model": ["m", "m", "n"],
        "variant": ["cpu-pytorch-bf16", "cpu-openvino-fp32", "cpu-openvino-fp32"],
    }
    traffic = [path for paths in records(plan).values() for path in paths if ".traffic." in path]
    assert traffic == [
        "reports/m/cpu-pytorch-bf16.traffic.json",
        "reports/m/cpu-openvino-fp32.traffic.json",
        "reports/n/cpu-openvino-fp32.traffic.json",
    ]


def test_columns_are_the_jobs_one_below_the_other() -> None:
    jobs = [("m", parse("cpu-pytorch-fp32")), ("n", parse("cpu-openvino-int8-nncf-64"))]
    assert columns(jobs) == {
        "model": ["m", "n"],
        "variant": ["cpu-pytorch-fp32", "cpu-openvino-int8-nncf-64"],
    }
    assert columns([]) == {"model": [], "variant": []}


def test_every_job_has_its_own_records(config: dict[str, Any]) -> None:
    plan = plan_of(config)
    found = records(plan)
    assert list(found) == [(model, str(variant)) for model, variant in plan.jobs]
    assert found["n", "cpu-onnxruntime-fp32"] == [
        "artifacts/n/engines/cpu-onnxruntime-fp32/engine.json",
        "reports/n/cpu-onnxruntime-fp32.latency.json",
        "reports/n/cpu-onnxruntime-fp32.accuracy.json",
        "reports/n/cpu-onnxruntime-fp32.profile.json",
        "reports/n/cpu.race.json",
    ]


def test_a_model_has_one_race_on_each_of_its_devices() -> None:
    names = ("cpu-pytorch-fp32", "cpu-openvino-fp32", "cuda-pytorch-fp32")
    jobs = [(model, parse(name)) for model in ("m", "n") for name in names]
    assert race_columns(jobs[:-1]) == {"model": ["m", "m", "n"], "device": ["cpu", "cuda", "cpu"]}
    assert race_columns([]) == {"model": [], "device": []}


def test_every_variant_of_the_model_on_that_device_may_race(config: dict[str, Any]) -> None:
    plan = make_plan(config)
    place = Wildcards(fromdict={"model": "n", "device": "cpu"})
    found = raced(plan, "reports/{model}/{variant}.latency.json", place)
    assert found == [
        f"reports/n/{variant}.latency.json" for model, variant in plan.jobs if model == "n"
    ]
    other = Wildcards(fromdict={"model": "n", "device": "cuda"})
    assert raced(plan, "{variant}", other) == []


def test_a_latency_does_not_hold_what_changes_no_number_that_is_there(
    config: dict[str, Any],
) -> None:
    settings = latency_settings(config)
    assert set(config["latency"]) - set(settings) == {"accept_disturbed", "quiet_seconds"}
    assert settings == {name: config["latency"][name] for name in settings}


def test_streams_are_a_setting_of_latency_on_a_gpu_and_of_no_build(config: dict[str, Any]) -> None:
    assert streams_of(config, job("m", "cuda-tensorrt-fp16")) == []
    built = engine_options(config, "tensorrt", wildcards(parse("cuda-tensorrt-fp16")))
    config["cuda"]["streams"] = [2, 4]
    assert streams_of(config, job("m", "cuda-tensorrt-fp16")) == [2, 4]
    assert streams_of(config, job("m", "cpu-pytorch-fp32")) == []
    after = engine_options(config, "tensorrt", wildcards(parse("cuda-tensorrt-fp16")))
    assert after == built


def test_every_step_to_an_int8_engine_may_hold_a_failure(config: dict[str, Any]) -> None:
    config["engines"] = {"onnxruntime": ["fp32", "int8", "int8-auto"], "openvino": ["int8"]}
    config["calibration"].update(reduce_range=False)
    settings = {"float": ["*.output.dense"], "activations": "asymmetric", "attention": False}
    config["repairs"] = {"ffn": settings}
    plan = plan_of(config)
    found = set(failing_files(config, plan)) - {
        one for own in records(plan).values() for one in own
    }
    assert {path for path in found if path.startswith("artifacts/n/")} == {
        "artifacts/n/model.onnx",
        "artifacts/n/model.simplified.onnx",
        "artifacts/n/calibration/minmax-64.json",
        "artifacts/n/calibration/nncf-64.json",
        "artifacts/n/quantized/u8s8-minmax-64.onnx",
        "artifacts/n/quantized/u8s8-minmax-64-ffn.onnx",
        "artifacts/n/costs/u8s8-minmax-64.json",
        "artifacts/n/search/u8s8-minmax-64.json",
        "artifacts/n/quantized/u8s8-minmax-64-auto.onnx",
        "artifacts/n/cpu.requests.json",
    }
    graphs = ("simplified", "u8s8-minmax-64", "u8s8-minmax-64-ffn", "u8s8-minmax-64-auto")
    assert {path for path in found if path.startswith("reports/n/")} == {
        f"reports/n/graphs/{graph}.json" for graph in graphs
    }
    config["engines"] = {"onnxruntime": ["fp32", "int8-dynamic"]}
    config["profile"] = {"variants": []}
    plan = plan_of(config)
    assert failing_files(config, plan) == [
        *(one for own in records(plan).values() for one in own),
        *(path for model in plan.models for path in onnx_files(model)),
        *(f"reports/{model}/graphs/simplified.json" for model in plan.models),
    ]


def test_each_engine_whose_operators_are_timed_is_profiled_by_default(
    config: dict[str, Any],
) -> None:
    assert config["profile"] == {"variants": "auto"}
    found = [str(variant) for model, variant in plan_of(config).profile if model == "m"]
    assert found == [one for one in jobs_of(plan_of(config), "m") if "compile" not in one]
    assert {*PROFILED, "compile"} == set(PROFILERS)
    config["profile"] = {"variants": []}
    assert plan_of(config).profile == []


def test_operators_of_a_gpu_are_not_timed_by_default(config: dict[str, Any]) -> None:
    plan = plan_of({**config, "devices": ["cuda"], "engines": {"onnxruntime": ["fp32"]}})
    assert plan.jobs
    assert plan.profile == []


def test_what_profiles_share_may_hold_a_failure(config: dict[str, Any]) -> None:
    config["profile"] = {"variants": ["cpu-onnxruntime-fp32", "cpu-pytorch-fp32"]}
    shared = ["artifacts/m/cpu.requests.json", "artifacts/machine/cpu.peaks.json"]
    found = failing_files(config, plan_of(config))
    assert [found.count(one) for one in shared] == [1, 1]


def test_only_what_may_collapse_has_an_audit(config: dict[str, Any]) -> None:
    config["engines"]["pytorch"] = ["bf16", "int8-dynamic"]
    found = [(model, str(variant)) for model, variant in audited(plan_of(config).jobs)]
    assert found == [
        ("m", "cpu-pytorch-int8-dynamic"),
        ("m", "cpu-onnxruntime-int8-minmax-64"),
        ("m", "cpu-openvino-int8-nncf-64"),
        ("n", "cpu-onnxruntime-int8-minmax-64"),
        ("n", "cpu-openvino-int8-nncf-64"),
    ]
    for model, variant in plan_of(config).jobs:
        place = Wildcards(fromdict={"model": model, "variant": str(variant)})
        assert bool(audit_input(place)) == ((model, str(variant)) in found)
    fp8 = ("m", parse("cuda-tensorrt-fp8-minmax-64"))
    assert audited([fp8, ("m", parse("cuda-tensorrt-fp16"))]) == [fp8]


@pytest.mark.parametrize(("reduced", "scheme"), [(False, "u8s8"), (True, "u8s7")])
def test_each_int8_auto_variant_has_its_search_in_the_scheme_of_this_host(
    config: dict[str, Any], reduced: bool, scheme: str
) -> None:
    config["engines"]["onnxruntime"] = ["int8", "int8-auto"]
    config["calibration"].update(samples=[32, 64], reduce_range=reduced)
    found = search_columns(config, plan_of(config).jobs)
    assert found == {
        "model": ["m", "m", "n", "n"],
        "scheme": [scheme] * 4,
        "calibration": ["minmax-32", "minmax-64"] * 2,
    }
    place = {"model": "n", "scheme": scheme, "calibration": "minmax-64-auto"}
    quantized = quantize_inputs(Wildcards(fromdict=place))
    assert quantized["search"] == f"artifacts/n/search/{scheme}-minmax-64.json"


def test_int8_bf16_alone_has_the_int8_engine_built_and_made_again_where_it_failed(
    config: dict[str, Any],
) -> None:
    config.update(emulated=True, engines={"pytorch": ["fp32"], "openvino": ["int8-bf16"]})
    plan = plan_of(config)
    assert "cpu-openvino-int8-nncf-64" not in {str(variant) for _, variant in plan.jobs}
    assert variant_suffixes(plan) == {"fp32", "int8-bf16-nncf-64", "int8-nncf-64"}
    built = "artifacts/m/engines/cpu-openvino-int8-nncf-64/engine.json"
    assert built in failing_files(config, plan)


def test_without_int8_auto_there_is_no_search(config: dict[str, Any]) -> None:
    none = {"model": [], "scheme": [], "calibration": []}
    assert search_columns(config, plan_of(config).jobs) == none


def test_device_engine_and_rest_are_the_name_of_each_job(config: dict[str, Any]) -> None:
    plan = plan_of(config)
    assert variant_suffixes(plan) == {"fp32", "bf16", "int8-minmax-64", "int8-nncf-64"}
    for _, variant in plan.jobs:
        rest = wildcards(variant).rest
        assert rest in variant_suffixes(plan)
        assert f"{variant.device}-{variant.engine}-{rest}" == str(variant)


@pytest.mark.parametrize("host", ["auto", "cpu-node"])
def test_the_host_keys_are_those_of_this_machine_or_the_named_node_type(
    config: dict[str, Any], host: str
) -> None:
    plan = make_plan({**config, "host": host})
    for device in ("cpu", "cuda"):
        here = for_device(describe_host(), device)
        own = (fingerprint(here), numerics_fingerprint(here))
        found = (plan.host[device], plan.numerics[device])
        assert found == (own if host == "auto" else (f"{device}@{host}", f"{device}@{host}"))


@pytest.mark.parametrize(
    ("variant", "source"),
    [
        ("cpu-pytorch-fp32", CHECKPOINT),
        ("cpu-pytorch-int8-dynamic", CHECKPOINT),
        ("cpu-torchscript-bf16", CHECKPOINT),
        ("cpu-compile-fp32", CHECKPOINT),
        ("cpu-inductor-bf16", CHECKPOINT),
        ("cpu-tvm-fp32", CHECKPOINT),
        ("cpu-onnxruntime-fp32", ONNX),
        ("cpu-onnxruntime-int8-dynamic", ONNX),
        ("cpu-openvino-bf16", ONNX),
        ("cuda-tensorrt-fp16", ONNX),
        ("cpu-onnxruntime-given", "artifacts/m/model.onnx"),
        ("cpu-openvino-given", "artifacts/m/model.onnx"),
        ("cuda-tensorrt-given", "artifacts/m/model.onnx"),
        ("cpu-onnxruntime-int8-minmax-64", "artifacts/m/quantized/u8s8-minmax-64.onnx"),
        ("cuda-onnxruntime-int8-minmax-64", "artifacts/m/quantized/s8s8-minmax-64.onnx"),
        ("cuda-tensorrt-int8-fp16-minmax-8", "artifacts/m/quantized/s8s8-minmax-8.onnx"),
        (
            "cpu-openvino-int8-bf16-nncf-8",
            "artifacts/m/engines/cpu-openvino-int8-nncf-8/engine.json",
        ),
    ],
)
def test_an_engine_that_is_given_its_precision_has_one_input(
    config: dict[str, Any], variant: str, source: str
) -> None:
    assert inputs_of(config, variant) == {"source": source}


@pytest.mark.parametrize(
    ("variant", "source", "cache"),
    [
        ("cpu-openvino-int8-nncf-64", ONNX, "nncf-64"),
        ("cpu-inductor-int8-minmax-64", CHECKPOINT, "minmax-64"),
    ],
)
def test_an_engine_that_quantizes_itself_gets_the_samples_as_well(
    config: dict[str, Any], variant: str, source: str, cache: str
) -> None:
    assert inputs_of(config, variant) == {
        "source": source,
        "onnx": ONNX,
        "calibration": f"artifacts/m/calibration/{cache}.json",
        "data": "artifacts/m/splits/calibration.json",
        "checkpoint": CHECKPOINT,
    }


@pytest.mark.parametrize(("route", "source"), [("onnx", ONNX), ("pytorch", CHECKPOINT)])
def test_openvino_is_built_from_what_its_route_says(
    config: dict[str, Any], route: str, source: str
) -> None:
    quantized = inputs_of(config, "cpu-openvino-int8-nncf-64")
    config["openvino"]["route"] = route
    assert inputs_of(config, "cpu-openvino-fp32") == {"source": source}
    assert inputs_of(config, "cpu-openvino-int8-nncf-64") == {**quantized, "source": source}
    assert inputs_of(config, "cpu-onnxruntime-fp32") == {"source": ONNX}
    assert inputs_of(config, "cpu-pytorch-fp32") == {"source": CHECKPOINT}


@pytest.mark.parametrize("route", ["onnx", "pytorch"])
def test_no_engine_of_a_model_that_is_an_onnx_file_only_is_built_from_a_checkpoint(
    config: dict[str, Any], route: str
) -> None:
    config["openvino"]["route"] = route
    plan = plan_of(config)
    sources = {name: inputs_of(config, name, "n")["source"] for name in jobs_of(plan, "n")}
    assert sources["cpu-onnxruntime-fp32"] == "artifacts/n/model.simplified.onnx"
    assert all(source.endswith(".onnx") for source in sources.values())
    assert jobs_of(plan, "m") == jobs_of(plan_of({**config, "openvino": {"route": "onnx"}}), "m")


def test_the_options_of_an_engine_are_its_section_of_the_configuration(
    config: dict[str, Any],
) -> None:
    config["onnxruntime"]["fusions"] = True
    assert options_of(config, "onnxruntime") == {
        "fusions": True,
        "attention_operator": False,
        "optimization": "all",
        "spinning": True,
        "arena": True,
    }
    for engine in ("pytorch", "torchscript", "compile", "inductor"):
        assert options_of(config, engine) == {}


@pytest.mark.parametrize("reduced", [False, True])
def test_an_engine_that_quantizes_itself_is_told_whether_to_keep_within_7_bits(
    config: dict[str, Any], reduced: bool
) -> None:
    config["calibration"]["reduce_range"] = reduced
    told = {
        variant: engine_options(config, parse(variant).engine, wildcards(parse(variant)))
        for variant in (
            "cpu-inductor-int8-minmax-64",
            "cpu-openvino-int8-nncf-64",
            "cpu-onnxruntime-int8-dynamic",
            "cpu-openvino-int8-bf16-nncf-64",
            "cpu-openvino-fp32",
            "cpu-onnxruntime-int8-minmax-64",
            "cpu-pytorch-int8-dynamic",
            "cuda-onnxruntime-int8-minmax-64",
            "cuda-compile-int8-dynamic",
        )
    }
    found = {variant: options.get("reduce_range") for variant, options in told.items()}
    assert found == {
        **dict.fromkeys(list(told)[:3], reduced),
        **dict.fromkeys(list(told)[3:]),
    }


def test_the_options_on_a_gpu_are_what_the_engine_reads_of_cuda(config: dict[str, Any]) -> None:
    buckets = {"batch": [1, 4], "sequence": [32, 64, 128]}
    eager = engine_options(config, "pytorch", wildcards(parse("cuda-pytorch-fp16")))
    assert eager == {"attention": "auto"}
    compiled = engine_options(config, "compile", wildcards(parse("cuda-compile-fp16")))
    assert compiled == {"attention": "auto", "autotune": True, "graphs": True, "buckets": buckets}
    plan = engine_options(config, "tensorrt", wildcards(parse("cuda-tensorrt-fp16")))
    assert plan == {
        "attention_operator": False,
        "graphs": True,
        "hardware_compatibility": "none",
        "optimization_level": 3,
        "profiles": [[[1, 1], [4, 64], [4, 128]]],
        "version_compatible": False,
    }


def test_the_options_of_a_static_engine_hold_the_buckets_of_the_model(
    config: dict[str, Any],
) -> None:
    config["models"]["n"]["max_sequence"] = 48
    own = {"batch": [1, 4], "sequence": [32, 64, 128]}
    other = {"batch": [1, 4], "sequence": [32, 64]}
    assert options_of(config, "openvino") == {
        "route": "onnx",
        "blobs": False,
        "static_programs": None,
        "buckets": own,
    }
    assert options_of(config, "openvino", "n")["buckets"] == other
    assert options_of(config, "tvm") == {"buckets": own}
    config["buckets"] = None
    assert options_of(config, "openvino") == {
        "route": "onnx",
        "blobs": False,
        "static_programs": None,
        "buckets": None,
    }
    assert "buckets" not in config["openvino"]


def test_an_engine_that_is_converted_from_pytorch_is_shaped_by_it_too(
    config: dict[str, Any],
) -> None:
    assert libraries_of(config, "openvino") == ("openvino", "nncf")
    config["openvino"]["route"] = "pytorch"
    assert libraries_of(config, "openvino") == ("openvino", "nncf", "torch", "transformers")
    for engine in ENGINES:
        if ENGINES[engine].source == "checkpoint":
            assert libraries_of(config, engine) == ENGINES[engine].libraries


def test_the_libraries_of_two_variants_are_those_of_both_engines() -> None:
    names = ("cpu-tvm-fp32", "cpu-pytorch-fp32")
    assert set(engine_libraries(*names)) == {"torch", "transformers", "apache-tvm"}
    same = engine_libraries("cpu-openvino-fp32", "cpu-openvino-bf16")
    assert set(same) == set(engine_libraries("cpu-openvino-fp32")) == {"openvino", "nncf"}


@pytest.mark.parametrize(
    ("engines", "reads"),
    [
        ({"torchscript": ["fp32"], "tvm": ["fp32"]}, False),
        ({"openvino": ["fp32"]}, True),
        # audited with the ONNX file
        ({"pytorch": ["int8-dynamic"]}, True),
        # calibrated on it
        ({"inductor": ["int8"]}, True),
    ],
)
def test_a_profile_reads_the_onnx_file_only_where_another_job_does(
    config: dict[str, Any], engines: dict[str, list[str]], reads: bool
) -> None:
    config["engines"] = engines
    variants = by_place([one for one in plan_of(config).jobs if one[0] == "m"])
    found = {
        model: counted_inputs(
            config, variants, Wildcards(fromdict={"model": model, "device": "cpu"})
        )
        for model in ("m", "n")
    }
    assert found == {"m": {"onnx": ONNX} if reads else {}, "n": {}}


def test_making_a_plan_imports_no_heavy_library(repository: Path) -> None:
    """Snakemake does it anew in the process of every job."""
    heavy = {"torch", "transformers", "pandas", "numpy", "onnx", "onnxruntime", "openvino"}
    code = f"import sys, tightrope.plan.plan; print(sorted({heavy} & set(sys.modules)))"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, check=True, cwd=repository / "scripts", capture_output=True)
    assert done.stdout.decode().strip() == "[]"


def sized(train: int | None, evaluation: int | None, **model: Any) -> dict[str, Any]:
    splits = {"train": train, "evaluation": evaluation}
    model = {"data": "digits", "task": IMAGE, "images": None, "splits": splits, **model}
    return {"models": {"m": model}, "calibration": {"pool": 1024}}


@pytest.mark.parametrize(
    ("sizes", "limits"),
    [
        ((3500, 1500), {"train": 6144, "evaluation": 2048}),
        ((3500, 2048), {"train": 6144, "evaluation": 2048}),
        ((None, 1500), {"train": None, "evaluation": 2048}),
        ((5121, None), {"train": 8192, "evaluation": None}),
    ],
)
def test_usual_sizes_of_splits_keep_as_many_examples_of_a_source(
    sizes: tuple[int | None, int | None], limits: dict[str, int | None]
) -> None:
    assert limits_of(sized(*sizes), Wildcards(fromdict={"model": "m"})) == limits


@pytest.mark.parametrize(
    ("train", "split", "names"),
    [
        (100, "train", {"train"}),
        (None, "train", {"train", "calibration", "evaluation"}),
        (100, "calibration", {"train", "calibration"}),
        (100, "evaluation", {"evaluation"}),
        (None, "timing", set()),
    ],
)
def test_a_split_depends_on_no_size_that_does_not_move_it(
    train: int | None, split: str, names: set[str]
) -> None:
    wildcards = Wildcards(fromdict={"model": "m", "split": split})
    assert set(deciding_sizes(sized(train, 50), wildcards)) == names


@pytest.mark.parametrize(
    ("checkpoint", "recipe", "read"),
    [
        ("path:mine", {"epochs": 1}, "splits/train.json"),
        ("scratch:bert", None, "splits/train.json"),
        ("path:mine", None, "data/data.json"),
        ("onnx:mine.onnx", None, "data/data.json"),
    ],
)
def test_a_checkpoint_that_is_not_trained_depends_on_no_split(
    checkpoint: str, recipe: dict[str, Any] | None, read: str
) -> None:
    config = {"models": {"m": {"checkpoint": checkpoint, "train": recipe}}}
    assert training_examples(config, Wildcards(fromdict={"model": "m"})) == f"artifacts/m/{read}"


def test_a_file_that_is_quantized_already_is_audited_and_never_calibrated(
    config: dict[str, Any],
) -> None:
    config["models"]["n"]["quantized"] = True
    config["engines"]["onnxruntime"] = ["int8", "int8-auto", "int8-dynamic"]
    plan = plan_of(config)
    found = ["cpu-onnxruntime-given", "cpu-openvino-given"]
    assert [name for name in jobs_of(plan, "n") if "int8" in name or "given" in name] == found
    own = [job for job in plan.jobs if job[0] == "n"]
    assert [str(variant) for _, variant in audited(own)] == found
    assert audit_input(job("n", found[0])) == {"audit": f"artifacts/n/audit/{found[0]}.json"}
    files = failing_files(config, plan._replace(jobs=own))
    assert not [path for path in files if "calibration" in path or "quantized" in path]
    assert search_columns(config, own) == {"model": [], "scheme": [], "calibration": []}
    assert "given" in variant_suffixes(plan)
