"""From a configuration to jobs: which variants run, why others do not, and what each job gets."""

from pathlib import Path
from typing import Any

import hosts
import pytest
import torch
import yaml
from configured import CONFIG, MODEL, configured
from planned_jobs import job_of
from tightrope.engine_table import ENGINES
from tightrope.plan import inputs, job_inputs, job_params, jobs
from tightrope.plan import plan as planning
from tightrope.plan.config_checks import checked
from tightrope.plan.location import Location
from tightrope.signature import IMAGE
from tightrope.variants import UNQUANTIZED, parse

NO_GPU, GPU = hosts.AVX2, {**hosts.AVX2, "gpu": "NVIDIA H100"}
ASKED = {"devices": "auto", "host": "auto", "hosts": {}, "emulated": False}
ASKED |= {"onnxruntime": {"provider": "cuda"}}
SESSION = {"fusions": False, "attention_operator": False, "optimization": "all"}
SESSION |= {"spinning": True, "arena": True}
NO_BF16 = "not supported by this CPU: no bf16 instructions; it would be emulated"
NO_TENSORRT = "no tensorrt: install what envs/gpu-tensorrt.txt names"
NO_CHECKPOINT = "no checkpoint: the model is an ONNX file"


def plan_of(config: dict[str, Any], host: dict[str, Any] = hosts.AMX) -> planning.Plan:
    return planning.make_plan(config, host)


@pytest.fixture(autouse=True)
def _compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler is there."""
    (tmp_path / "g++").write_text("#!/bin/sh\n")
    (tmp_path / "g++").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)


@pytest.fixture
def config() -> dict[str, Any]:
    """Model m with a checkpoint, model n that is an ONNX file only."""
    engines = {"pytorch": ["bf16"], "compile": ["fp32"], "onnxruntime": ["int8"]}
    filled = configured(
        **{"models": {"m": MODEL}, "engines": {**engines, "openvino": ["fp32", "int8"]}},
        **{"calibration": {"samples": [64], "reduce_range": False}, "devices": ["cpu"]},
        shapes=[{"batch": 4, "sequence": 64}],
    )
    filled["models"]["n"] = {**filled["models"]["m"], "checkpoint": "onnx:n.onnx"}
    return filled


def jobs_of(plan: planning.Plan, model: str) -> list[str]:
    return [str(variant) for name, variant in plan.jobs if name == model]


def reasons_of(plan: planning.Plan, model: str) -> dict[str, str]:
    return {variant: reason for name, variant, reason in plan.unavailable if name == model}


def options_of(config: dict[str, Any], variant: str, model: str = "m") -> dict[str, Any]:
    return job_params.engine_options(config, model, parse(variant))


def test_each_model_has_a_job_for_every_variant_that_its_source_allows(config) -> None:
    plan = plan_of(config)
    shared = ["cpu-onnxruntime-int8-minmax-64", "cpu-openvino-fp32", "cpu-openvino-int8-nncf-64"]
    assert plan.models == ["m", "n"]
    of_checkpoint = ["cpu-pytorch-fp32", "cpu-pytorch-bf16", "cpu-compile-fp32"]
    assert jobs_of(plan, "m") == [*of_checkpoint, *shared]
    assert jobs_of(plan, "n") == ["cpu-onnxruntime-fp32", *shared]
    assert reasons_of(plan, "m") == {}
    assert reasons_of(plan, "n") == dict.fromkeys(of_checkpoint[1:], NO_CHECKPOINT)
    # each device has the baseline of the source
    own, onnx = "cpu-pytorch-fp32", "cpu-onnxruntime-fp32"
    for model, baseline in (("m", own), ("n", onnx)):
        both = {"cpu": baseline, "cuda": baseline.replace("cpu", "cuda")}
        assert plan.baselines[model] == both
        job = job_of(config, plan, model=model, variant="cpu-openvino-fp32")
        assert jobs.ROWS["measure_latency"].loads(job) == (job.variant, parse(baseline))
    # also where an engine that takes either is built from the checkpoint
    config["openvino"]["route"] = "pytorch"
    assert jobs_of(plan_of(config), "m") == jobs_of(plan, "m")
    for name in jobs_of(plan_of(config), "n"):
        assert job_inputs.engine_inputs(config, "n", parse(name))["source"].endswith(".onnx")


@pytest.mark.parametrize(
    ("variant", "host", "source", "reason"),
    [
        ("cpu-pytorch-fp32", NO_GPU, "path:m", None),
        ("cpu-pytorch-fp32", NO_GPU, "onnx:m.onnx", NO_CHECKPOINT),
        ("cuda-onnxruntime-fp32", NO_GPU, "onnx:m.onnx", "no NVIDIA GPU"),
        ("cuda-pytorch-fp32", NO_GPU, "path:m", "no NVIDIA GPU"),
        pytest.param(
            *("cuda-pytorch-fp32", GPU, "path:m"),
            "PyTorch without CUDA: install what envs/gpu.txt names",
            marks=pytest.mark.skipif(bool(torch.version.cuda), reason="PyTorch has CUDA"),
        ),
        ("cuda-tensorrt-fp16", GPU, "path:m", NO_TENSORRT),
        ("cpu-pytorch-bf16", NO_GPU, "path:m", NO_BF16),
        ("cpu-pytorch-bf16", NO_GPU, "onnx:m.onnx", NO_CHECKPOINT),
    ],
)
def test_the_first_thing_that_is_missing_is_the_reason(variant, host, source, reason) -> None:
    model = {"checkpoint": source, "task": "text-classification"}
    assert planning.unavailable_reason(ASKED, parse(variant), host, model) == reason
    of_images = planning.unavailable_reason(
        ASKED, parse("cpu-tvm-fp32"), host, {**model, "task": IMAGE}
    )
    assert of_images == (NO_CHECKPOINT if "onnx:" in source else "TVM compiles text models only")


def test_a_gpu_that_is_asked_for_needs_what_it_lacks_only_where_it_is_this_machines() -> None:
    """The head node of a cluster has none, or another than its nodes."""
    model = {"checkpoint": "path:m", "task": "text-classification"}
    asked, node = {**ASKED, "devices": ["cuda"]}, {"devices": ["cuda"], "host": "gpu-node"}
    for config, host, reason in (
        (asked, GPU, NO_TENSORRT),
        (asked, NO_GPU, None),
        ({**ASKED, **node}, GPU, None),
    ):
        variant = parse("cuda-tensorrt-fp16")
        assert planning.unavailable_reason(config, variant, host, model) == reason


def test_the_tensorrt_provider_runs_two_precisions_with_profiles_and_without_graphs(config) -> None:
    config |= {"devices": ["cuda"], "onnxruntime": {**SESSION, "provider": "tensorrt"}}
    config["engines"] = {"onnxruntime": ["fp32", "fp16"]}
    on_gpu = {name for name in jobs_of(plan_of(config), "m") if name.startswith("cuda-onnxruntime")}
    assert on_gpu == {"cuda-onnxruntime-fp32", "cuda-onnxruntime-fp16"}
    own = options_of(config, "cuda-onnxruntime-fp16")
    profiles = [[[4, 64]] * 3, [[1, 1], [4, 64], [4, 128]]]
    assert own == {**SESSION, "provider": "tensorrt", "profiles": profiles}
    config["onnxruntime"]["provider"] = "cuda"
    own = options_of(config, "cuda-onnxruntime-fp16")
    assert own == {**SESSION, "provider": "cuda", "graphs": True, "buckets": own["buckets"]}
    assert options_of(config, "cpu-onnxruntime-fp32") == SESSION


@pytest.fixture(scope="module")
def default() -> dict[str, Any]:
    """The configuration that a first run has, on the CPU."""
    asked = yaml.safe_load(CONFIG.read_text())
    return checked({**asked, "devices": ["cpu"]})


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("AVX2", {"pytorch-bf16", "openvino-bf16", "openvino-int8-bf16-nncf-512"}),
        ("AVX-512", {"pytorch-bf16", "openvino-bf16", "openvino-int8-bf16-nncf-512"}),
        ("AMX", set()),
        ("ARM", {"openvino-bf16", "openvino-int8-bf16-nncf-512"}),
    ],
)
def test_the_default_run_leaves_out_what_a_cpu_of_its_kind_only_emulates(default, kind, missing):
    (model,) = default["models"]
    plan = plan_of(default, hosts.HOSTS[kind])
    assert set(reasons_of(plan, model)) == {f"cpu-{name}" for name in missing}
    assert all("no bf16 instructions" in why for why in reasons_of(plan, model).values())
    # what is quantized may race a float of its own engine
    own = [one for one in map(parse, jobs_of(plan, model)) if one.engine == "openvino"]
    floats = {str(one) for one in own if one.precision in UNQUANTIZED}
    assert floats == {"cpu-openvino-bf16" if kind == "AMX" else "cpu-openvino-fp32"}
    assert len(own) > len(floats)
    # of the nodes of a named host this machine knows nothing
    for change in ({"emulated": True}, {"host": "node-type"}):
        everything = plan_of({**default, **change}, hosts.HOSTS[kind])
        assert reasons_of(everything, model) == {}
        assert missing <= {name.removeprefix("cpu-") for name in jobs_of(everything, model)}


def test_a_latency_does_not_hold_what_changes_no_number_that_is_there(config) -> None:
    settings = job_params.latency_settings(config)
    assert set(config["latency"]) - set(settings) == {"accept_disturbed", "quiet_seconds"}
    assert settings == {name: config["latency"][name] for name in settings}
    # streams are a setting of latency on a GPU and of no build
    built = options_of(config, "cuda-tensorrt-fp16")
    config["cuda"]["streams"] = [2, 4]
    timed = [job_of(config, variant=f"{one}-pytorch-fp32") for one in ("cuda", "cpu")]
    found = [jobs.value_of("streams", job) for job in timed]
    assert found == [[2, 4], []]
    assert options_of(config, "cuda-tensorrt-fp16") == built


def test_every_step_to_an_int8_engine_may_hold_a_failure(config: dict[str, Any]) -> None:
    config["engines"] = {"onnxruntime": ["fp32", "int8", "int8-auto"], "openvino": ["int8"]}
    settings = {"float": ["*.output.dense"], "activations": "asymmetric", "attention": False}
    config["repairs"] = {"ffn": settings}
    plan = plan_of(config)
    every = planning.failing_files(config, plan)
    found = {*every} - {one for own in planning.records(plan).values() for one in own}
    quantized = [f"u8s8-minmax-64{one}" for one in ("", "-ffn", "-auto")]
    steps = ("calibration/minmax-64", "calibration/nncf-64", "cpu.requests")
    steps += ("costs/u8s8-minmax-64", "search/u8s8-minmax-64")
    assert {path for path in found if path.startswith("artifacts/n/")} == {
        *(f"artifacts/n/model{one}.onnx" for one in ("", ".simplified")),
        *(f"artifacts/n/quantized/{one}.onnx" for one in quantized),
        *(f"artifacts/n/{one}.json" for one in steps),
    }
    drawn = {path for path in found if path.startswith("reports/n/")}
    assert drawn == {f"reports/n/graphs/{one}.json" for one in ("simplified", *quantized)}
    # what profiles share is there once
    shared = ("artifacts/m/cpu.requests.json", "artifacts/machine/cpu.peaks.json")
    assert [every.count(one) for one in shared] == [1, 1]


def test_what_may_collapse_is_judged_before_it_is_timed(config: dict[str, Any]) -> None:
    config["engines"]["pytorch"] = ["bf16", "int8-dynamic"]
    plan, found = plan_of(config), {}
    for model, variant in plan.jobs:
        own = job_of(config, plan, model=model, variant=str(variant))
        judged = inputs.judged(own).get("judged")
        beside = inputs.collapse(own)
        assert bool(judged) == bool(beside)
        if model == "m" and judged:
            assert judged.flags == {"ancient": True}
            found[judged] = {*beside.values()}
    baseline = "reports/m/cpu-pytorch-fp32.accuracy.json"
    assert found == {
        "reports/m/cpu-pytorch-int8-dynamic.accuracy.json": {baseline},
        "reports/m/cpu-onnxruntime-int8-minmax-64.accuracy.json": {
            *(baseline, "artifacts/m/quantized/u8s8-minmax-64.onnx")
        },
        "reports/m/cpu-openvino-int8-nncf-64.accuracy.json": {baseline},
    }


@pytest.mark.parametrize(("reduced", "scheme"), [(False, "u8s8"), (True, "u8s7")])
def test_each_int8_auto_variant_has_its_search_in_the_scheme_of_this_host(config, reduced, scheme):
    assert job_inputs.searches_of(config, plan_of(config).jobs) == []
    config["engines"]["onnxruntime"] = ["int8", "int8-auto"]
    config["calibration"].update(samples=[32, 64], reduce_range=reduced)
    jobs = plan_of(config).jobs
    names = [(model, f"minmax-{count}") for model in "mn" for count in (32, 64)]
    assert job_inputs.searches_of(config, jobs) == [(model, scheme, name) for model, name in names]
    assert {*names} < {*job_inputs.caches_of(jobs)}
    own = job_of(config, model="n", scheme=scheme, calibration="minmax-64-auto")
    quantized = inputs.quantizing(own)
    assert quantized["search"] == f"artifacts/n/search/{scheme}-minmax-64.json"


def test_int8_bf16_alone_has_the_int8_engine_built_and_made_again_where_it_failed(config) -> None:
    suffixes = {"fp32", "bf16", "int8-minmax-64", "int8-nncf-64"}
    assert planning.variant_suffixes(plan_of(config)) == suffixes
    config.update(emulated=True, engines={"pytorch": ["fp32"], "openvino": ["int8-bf16"]})
    plan = plan_of(config)
    assert "cpu-openvino-int8-nncf-64" not in jobs_of(plan, "m")
    assert planning.variant_suffixes(plan) == {"fp32", "int8-bf16-nncf-64", "int8-nncf-64"}
    built = "artifacts/m/engines/cpu-openvino-int8-nncf-64/engine.json"
    assert built in planning.failing_files(config, plan)


def test_the_options_of_an_engine_are_its_section_and_what_it_reads_of_cuda_and_buckets(config):
    buckets = {"batch": [1, 4], "sequence": [32, 64, 128]}
    config["onnxruntime"]["fusions"] = True
    assert options_of(config, "cpu-onnxruntime-fp32") == {**SESSION, "fusions": True}
    for engine in ("pytorch", "torchscript", "compile", "inductor"):
        assert options_of(config, f"cpu-{engine}-fp32") == {}
    assert options_of(config, "cuda-pytorch-fp16") == {"attention": "auto"}
    compiled = {"attention": "auto", "autotune": True, "graphs": True, "buckets": buckets}
    assert options_of(config, "cuda-compile-fp16") == {**compiled, "shapes": [[4, 64]]}
    assert options_of(config, "cuda-tensorrt-fp16") == {
        **{"attention_operator": False, "graphs": True, "hardware_compatibility": "none"},
        **{"optimization_level": 3, "version_compatible": False},
        "profiles": [[[4, 64]] * 3, [[1, 1], [4, 64], [4, 128]]],
    }
    own = {"route": "onnx", "blobs": False, "static_programs": None}
    assert options_of(config, "cpu-openvino-fp32") == {**own, "buckets": buckets}
    assert options_of(config, "cpu-tvm-fp32") == {"buckets": buckets}
    # one that quantizes itself is told whether to keep within 7 bits
    told = ("inductor-int8-minmax-64", "openvino-int8-nncf-64", "onnxruntime-int8-dynamic")
    others = ("openvino-int8-bf16-nncf-64", "pytorch-int8-dynamic", "onnxruntime-int8-minmax-64")
    for reduced in (True, False):
        config["calibration"]["reduce_range"] = reduced
        kept = {options_of(config, f"cpu-{name}")["reduce_range"] for name in told}
        assert kept == {reduced}
    assert not [one for one in others if "reduce_range" in options_of(config, f"cpu-{one}")]
    config["models"]["n"]["max_sequence"] = 48
    other = options_of(config, "cpu-openvino-fp32", "n")["buckets"]
    assert other == {"batch": [1, 4], "sequence": [32, 64]}
    config["buckets"] = None
    assert options_of(config, "cpu-openvino-fp32") == {**own, "buckets": None}
    assert config["openvino"] == own


def test_the_libraries_of_an_engine_are_its_own_and_those_that_convert_it(config) -> None:
    assert job_params.libraries_of(config, "openvino") == ("openvino", "nncf")
    config["openvino"]["route"] = "pytorch"
    converting = ("torch", "transformers")
    assert job_params.libraries_of(config, "openvino") == ("openvino", "nncf", *converting)
    for engine in ENGINES:
        if ENGINES[engine].source == "checkpoint":
            assert job_params.libraries_of(config, engine) == ENGINES[engine].libraries
    plan = plan_of(config)
    table = jobs.Table(config, plan, Location("."), None)
    libraries = table.params("measure_latency")["libraries"]
    both = libraries({"model": "m", "variant": "cpu-tvm-fp32"})
    assert set(both) == {"torch", "transformers", "apache-tvm"}


@pytest.mark.parametrize(
    ("engines", "reads"),
    [
        ({"torchscript": ["fp32"], "tvm": ["fp32"]}, False),
        ({"openvino": ["fp32"]}, True),
        ({"pytorch": ["int8-dynamic"]}, False),
        # calibrated on it
        ({"inductor": ["int8"]}, True),
    ],
)
def test_a_profile_reads_the_onnx_file_only_where_another_job_does(config, engines, reads) -> None:
    config["engines"] = engines
    plan = plan_of(config)
    plan = plan._replace(variants=planning.by_place([one for one in plan.jobs if one[0] == "m"]))
    found = [
        inputs.counted(job_of(config, plan, model=model, device="cpu")) for model in ("m", "n")
    ]
    assert found == [{"onnx": "artifacts/m/model.simplified.onnx"} if reads else {}, {}]


def sized(train: int | None, evaluation: int | None) -> dict[str, Any]:
    splits = {"train": train, "evaluation": evaluation}
    model = {"data": "digits", "task": IMAGE, "images": None, "splits": splits}
    return {"models": {"m": model}, "calibration": {"pool": 1024}}


def test_splits_depend_on_no_size_that_does_not_move_them() -> None:
    for sizes, limits in (
        ((3500, 1500), {"train": 6144, "evaluation": 2048}),
        ((3500, 2048), {"train": 6144, "evaluation": 2048}),
        ((None, 1500), {"train": None, "evaluation": 2048}),
        ((5121, None), {"train": 8192, "evaluation": None}),
    ):
        assert job_params.limits_of(sized(*sizes), "m") == limits
    for train, split, names in (
        (100, "train", {"train"}),
        (None, "train", {"train", "calibration", "evaluation"}),
        (100, "calibration", {"train", "calibration"}),
        (100, "evaluation", {"evaluation"}),
        (None, "timing", set()),
    ):
        assert set(job_params.deciding_sizes(sized(train, 50), "m", split)) == names
