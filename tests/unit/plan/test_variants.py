from typing import Any

import hosts
import pytest
from tightrope.engine_table import ENGINES, INSTRUCTIONS
from tightrope.errors import ConfigError
from tightrope.machine.host import ISA
from tightrope.plan.variants import configured, only_emulated
from tightrope.variants import parse

MODELS = {
    "m": {"checkpoint": "hub:owner/name@1", "quantized": False},
    "onnx-only": {"checkpoint": "onnx:files/model.onnx", "quantized": False},
    "quantized": {"checkpoint": "onnx:files/quantized.onnx", "quantized": True},
}
CONFIG: dict[str, Any] = {
    "devices": "auto",
    "host": "auto",
    "hosts": {},
    "emulated": False,
    "models": MODELS,
    "engines": {
        "pytorch": ["fp32", "bf16"],
        "onnxruntime": ["fp32", "int8"],
        "openvino": ["fp32", "bf16", "int8"],
        "tensorrt": ["fp16"],
    },
    "calibration": {"methods": ["minmax", "nncf"], "samples": [64, 512]},
    "repairs": {},
}
KINDS = hosts.HOSTS.items()


def names(config: dict[str, Any], model: str = "m", host: dict[str, Any] = hosts.AMX) -> list[str]:
    return [str(variant) for variant in configured(config, model, host)]


def test_auto_plans_each_engine_on_the_devices_that_it_has() -> None:
    assert names(CONFIG) == [
        "cpu-pytorch-fp32",
        "cuda-pytorch-fp32",
        "cpu-pytorch-bf16",
        "cuda-pytorch-bf16",
        "cpu-onnxruntime-fp32",
        "cuda-onnxruntime-fp32",
        "cpu-onnxruntime-int8-minmax-64",
        "cpu-onnxruntime-int8-minmax-512",
        "cuda-onnxruntime-int8-minmax-64",
        "cuda-onnxruntime-int8-minmax-512",
        "cpu-openvino-fp32",
        "cpu-openvino-bf16",
        "cpu-openvino-int8-nncf-64",
        "cpu-openvino-int8-nncf-512",
        "cuda-tensorrt-fp16",
    ]


def test_the_cpu_alone_gets_only_its_variants() -> None:
    engines = {name: CONFIG["engines"][name] for name in ("pytorch", "openvino")}
    found = names({**CONFIG, "devices": ["cpu"], "engines": engines})
    assert found == [
        "cpu-pytorch-fp32",
        "cpu-pytorch-bf16",
        "cpu-openvino-fp32",
        "cpu-openvino-bf16",
        "cpu-openvino-int8-nncf-64",
        "cpu-openvino-int8-nncf-512",
    ]


@pytest.mark.parametrize("devices", ["auto", ["cpu"], ["cpu", "cuda"]])
def test_the_baseline_of_each_device_is_there_without_being_asked_for(devices: Any) -> None:
    found = names({**CONFIG, "devices": devices, "engines": {"onnxruntime": ["fp32"]}})
    wanted = ("cpu", "cuda") if devices == "auto" else devices
    assert {f"{device}-pytorch-fp32" for device in wanted} <= set(found)
    assert len(found) == len(set(found))


def test_a_model_that_is_an_onnx_file_only_gets_its_own_baselines() -> None:
    config = {**CONFIG, "engines": {"openvino": ["bf16"]}}
    assert names(config, "m") == ["cpu-pytorch-fp32", "cuda-pytorch-fp32", "cpu-openvino-bf16"]
    assert names(config, "onnx-only") == [
        "cpu-onnxruntime-fp32",
        "cuda-onnxruntime-fp32",
        "cpu-openvino-bf16",
    ]


def test_a_baseline_that_is_asked_for_as_well_is_there_once() -> None:
    config = {**CONFIG, "devices": ["cpu"], "engines": {"onnxruntime": ["fp32"]}}
    assert names(config, "onnx-only") == ["cpu-onnxruntime-fp32"]
    assert names(config, "m") == ["cpu-pytorch-fp32", "cpu-onnxruntime-fp32"]


def test_every_engine_of_the_cpu_is_planned_in_the_precisions_that_were_asked_for() -> None:
    engines = {
        "pytorch": ["int8-dynamic"],
        "torchscript": ["fp32"],
        "compile": ["bf16"],
        "inductor": ["fp32", "int8"],
        "onnxruntime": ["fp16", "int8-dynamic"],
        "openvino": ["int8-bf16"],
        "tvm": ["fp32"],
    }
    assert names({**CONFIG, "devices": ["cpu"], "engines": engines, "emulated": True}) == [
        "cpu-pytorch-fp32",
        "cpu-pytorch-int8-dynamic",
        "cpu-torchscript-fp32",
        "cpu-compile-bf16",
        "cpu-inductor-fp32",
        "cpu-inductor-int8-minmax-64",
        "cpu-inductor-int8-minmax-512",
        "cpu-onnxruntime-fp16",
        "cpu-onnxruntime-int8-dynamic",
        "cpu-openvino-int8-bf16-nncf-64",
        "cpu-openvino-int8-bf16-nncf-512",
        "cpu-tvm-fp32",
    ]


@pytest.mark.parametrize("devices", ["auto", ["cpu"], ["cuda"]])
@pytest.mark.parametrize(
    ("engines", "reason"),
    [
        (
            {"openvino": ["fp16"]},
            "openvino: fp16 .*openvino has on cpu fp32, bf16, int8",
        ),
        (
            {"onnxruntime": ["int8-bf16"]},
            "onnxruntime has on cpu fp32, .*; on cuda fp32, fp16",
        ),
        ({"pytorch": ["int8"]}, "pytorch: int8 exists on no device"),
    ],
)
def test_what_no_device_can_do_is_a_config_error(
    devices: Any, engines: dict[str, list[str]], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        names({**CONFIG, "devices": devices, "engines": engines})


def test_a_forced_device_gets_of_each_engine_what_exists_on_it_as_auto_does() -> None:
    both = names(CONFIG)
    for device in ("cpu", "cuda"):
        forced = names({**CONFIG, "devices": [device]})
        assert forced == [name for name in both if name.startswith(device)]
    assert names({**CONFIG, "devices": ["cpu", "cuda"]}) == both
    assert names({**CONFIG, "devices": ["cuda"]})[-1] == "cuda-tensorrt-fp16"


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_engine_needs_of_a_cpu_are_instructions_that_a_host_is_described_with(
    engine: str,
) -> None:
    for number, needed in (ENGINES[engine].instructions or {}).items():
        assert number in ENGINES[engine].precisions["cpu"]
        assert set(needed) <= set(INSTRUCTIONS[number]) <= set(ISA)


@pytest.mark.parametrize(
    ("variant", "computing"),
    [
        ("cpu-pytorch-fp32", {"AVX2", "AVX-512", "AMX", "ARM"}),
        ("cpu-pytorch-int8-dynamic", {"AVX2", "AVX-512", "AMX", "ARM"}),
        ("cpu-onnxruntime-int8-minmax-64", {"AVX2", "AVX-512", "AMX", "ARM"}),
        ("cpu-pytorch-bf16", {"AMX", "ARM"}),
        ("cpu-torchscript-bf16", {"AMX", "ARM"}),
        ("cpu-compile-bf16", {"AMX", "ARM"}),
        ("cpu-inductor-bf16", {"AMX", "ARM"}),
        ("cpu-openvino-bf16", {"AMX"}),
        ("cpu-openvino-int8-bf16-nncf-64", {"AMX"}),
        ("cpu-onnxruntime-fp16", {"ARM"}),
        ("cuda-pytorch-bf16", {"AVX2", "AVX-512", "AMX", "ARM"}),
        ("cuda-onnxruntime-fp16", {"AVX2", "AVX-512", "AMX", "ARM"}),
    ],
)
def test_each_kind_of_cpu_has_the_precisions_that_it_has_instructions_for(
    variant: str, computing: set[str]
) -> None:
    reasons = {kind: only_emulated(CONFIG, parse(variant), host) for kind, host in KINDS}
    assert {kind for kind, reason in reasons.items() if reason is None} == computing


def test_the_reason_names_the_type_and_the_engine_that_does_not_use_what_there_is() -> None:
    reason = "not supported by this CPU: no bf16 instructions; it would be emulated"
    for name in ("cpu-pytorch-bf16", "cpu-openvino-bf16", "cpu-openvino-int8-bf16-nncf-64"):
        assert only_emulated(CONFIG, parse(name), hosts.AVX2) == reason
    assert only_emulated(CONFIG, parse("cpu-openvino-bf16"), hosts.ARM) == (
        "not supported by this CPU: no bf16 instructions that openvino uses; it would be emulated"
    )
    fp16 = parse("cpu-onnxruntime-fp16")
    assert only_emulated(CONFIG, fp16, hosts.AVX2) == reason.replace("bf16", "fp16")
    assert "fp16 instructions that onnxruntime uses" in only_emulated(CONFIG, fp16, hosts.AMX)


@pytest.mark.parametrize("change", [{"emulated": True}, {"host": "node-type"}])
def test_emulated_and_a_named_host_lack_nothing(change: dict[str, Any]) -> None:
    config = {**CONFIG, **change}
    assert only_emulated(config, parse("cpu-openvino-bf16"), hosts.AVX2) is None
    assert names(config, host=hosts.AVX2) == names(config, host=hosts.AMX)


OPENVINO = ["cpu-openvino-bf16", "cpu-openvino-int8-nncf-64", "cpu-openvino-int8-bf16-nncf-64"]


@pytest.mark.parametrize(
    ("kind", "precisions", "planned"),
    [
        ("AVX2", ["bf16", "int8"], ["cpu-openvino-fp32", *OPENVINO[:2]]),
        ("AVX2", ["bf16", "int8", "int8-bf16"], ["cpu-openvino-fp32", *OPENVINO]),
        ("ARM", ["bf16", "int8"], ["cpu-openvino-fp32", *OPENVINO[:2]]),
        ("AMX", ["bf16", "int8", "int8-bf16"], OPENVINO),
        ("AVX2", ["fp32", "bf16", "int8"], ["cpu-openvino-fp32", *OPENVINO[:2]]),
        # nothing quantized is left, or nothing in float was asked for
        ("AVX2", ["bf16"], OPENVINO[:1]),
        ("AVX2", ["bf16", "int8-bf16"], [OPENVINO[0], OPENVINO[2]]),
        ("AVX2", ["int8"], OPENVINO[1:2]),
    ],
)
def test_fp32_stands_in_for_the_float_that_would_be_emulated(
    kind: str, precisions: list[str], planned: list[str]
) -> None:
    calibration = {"methods": ["nncf"], "samples": [64]}
    config = {**CONFIG, "engines": {"openvino": precisions}, "calibration": calibration}
    found = names({**config, "devices": ["cpu"]}, host=hosts.HOSTS[kind])
    assert found == ["cpu-pytorch-fp32", *planned]


def test_int8_without_a_method_that_the_engine_knows_is_a_config_error() -> None:
    calibration = {"methods": ["minmax"], "samples": [64]}
    with pytest.raises(ConfigError, match=r"engines\.openvino: int8 needs .* nncf"):
        configured({**CONFIG, "calibration": calibration}, "m", hosts.AMX)


@pytest.mark.parametrize("engine", ["pytorch", "torchscript", "tvm"])
def test_int8_of_an_engine_that_has_none_is_refused_with_what_it_has(engine: str) -> None:
    config = {**CONFIG, "devices": ["cpu"], "engines": {engine: ["int8"]}}
    with pytest.raises(ConfigError, match=f"{engine} has on cpu fp32"):
        configured(config, "m", hosts.AMX)


def test_each_repair_is_one_more_variant_of_engines_fed_by_quantized_onnx() -> None:
    repairs = {
        "smooth": {"activations": None, "attention": False},
        "usual": {"activations": "symmetric", "attention": False},
    }
    calibration = {"methods": ["minmax", "nncf"], "samples": [64]}
    engines = {"onnxruntime": ["int8"], "openvino": ["int8"]}
    config = {**CONFIG, "devices": ["cpu"], "calibration": calibration, "repairs": repairs}
    config["engines"] = engines
    assert [name for name in names(config) if "int8" in name] == [
        "cpu-onnxruntime-int8-minmax-64",
        "cpu-onnxruntime-int8-minmax-64-smooth",
        "cpu-onnxruntime-int8-minmax-64-usual",
        "cpu-openvino-int8-nncf-64",
    ]
    found = parse("cpu-onnxruntime-int8-minmax-64-smooth")
    assert (found.calibration, found.statistics) == ("minmax-64-smooth", "minmax-64")
    assert (found.repair, found.scheme) == ("smooth", "u8s8")
    assert parse("cpu-onnxruntime-int8-minmax-64").repair is None


def test_tensorrt_takes_no_asymmetric_activations() -> None:
    config = {
        **CONFIG,
        "devices": "auto",
        "engines": {"tensorrt": ["int8-fp16", "fp8"]},
        "calibration": {"methods": ["entropy"], "samples": [8]},
        "repairs": {"asym": {"activations": "asymmetric"}, "bias": {"activations": None}},
    }
    calibrated = [name for name in names(config) if "entropy" in name]
    int8, fp8 = (f"cuda-tensorrt-{precision}-entropy-8" for precision in ("int8-fp16", "fp8"))
    assert calibrated == [int8, f"{int8}-bias", fp8, f"{fp8}-bias"]


def test_attention_is_quantized_for_tensorrt_alone() -> None:
    config = {
        **CONFIG,
        "engines": {"onnxruntime": ["int8"], "tensorrt": ["int8-fp16", "fp8"]},
        "calibration": {"methods": ["minmax"], "samples": [512]},
        "repairs": {"mha": {"activations": None, "attention": True}},
    }
    assert [name for name in names(config) if name.endswith("-mha")] == [
        "cuda-onnxruntime-int8-minmax-512-mha",
        "cuda-tensorrt-int8-fp16-minmax-512-mha",
        "cuda-tensorrt-fp8-minmax-512-mha",
    ]


def test_int8_auto_is_searched_on_real_samples_and_without_repairs() -> None:
    config = {
        **CONFIG,
        "devices": ["cpu"],
        "engines": {"onnxruntime": ["int8-auto"]},
        "calibration": {"methods": ["entropy", "random", "nncf"], "samples": [8, 16]},
        "repairs": {"smooth": {"activations": None}},
    }
    assert [name for name in names(config) if "int8" in name] == [
        "cpu-onnxruntime-int8-auto-entropy-8",
        "cpu-onnxruntime-int8-auto-entropy-16",
    ]
    config["calibration"] = {"methods": ["random"], "samples": [8]}
    with pytest.raises(
        ConfigError, match=r"int8-auto needs one of .* minmax, entropy, percentile,"
    ):
        names(config)
    with pytest.raises(ConfigError, match="takes no repair"):
        parse("cpu-onnxruntime-int8-auto-entropy-8-smooth")


EVERY_PRECISION = {
    "inductor": ["int8"],
    "onnxruntime": ["fp32", "int8", "int8-auto", "int8-dynamic"],
    "openvino": ["bf16", "int8", "int8-bf16"],
    "tensorrt": ["fp16", "int8-fp16", "fp8"],
}


def test_of_a_file_that_is_quantized_already_calibrated_precisions_are_one_variant_given() -> None:
    config = {**CONFIG, "engines": EVERY_PRECISION}
    assert names(config, "quantized") == [
        "cpu-onnxruntime-fp32",
        "cuda-onnxruntime-fp32",
        # of a checkpoint, so unavailable
        *("cpu-inductor-int8-minmax-64", "cpu-inductor-int8-minmax-512"),
        "cpu-onnxruntime-given",
        "cuda-onnxruntime-given",
        "cpu-openvino-bf16",
        "cpu-openvino-given",
        "cuda-tensorrt-fp16",
        "cuda-tensorrt-given",
    ]


def test_given_is_planned_on_the_devices_that_have_the_precision_in_its_place() -> None:
    config = {**CONFIG, "engines": {"onnxruntime": ["int8-auto"]}}
    assert "cuda-onnxruntime-given" not in names(config, "quantized")
    assert "cpu-onnxruntime-given" in names(config, "quantized")


def test_other_models_have_no_variant_given() -> None:
    config = {**CONFIG, "engines": EVERY_PRECISION}
    config["calibration"] = {"methods": ["minmax", "nncf"], "samples": [64]}
    for model in ("m", "onnx-only"):
        assert not [name for name in names(config, model) if name.endswith("given")]
