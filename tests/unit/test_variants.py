from typing import Any

import pytest
from tightrope.errors import ConfigError
from tightrope.variants import CALIBRATED, ENGINES, Variant, baseline, configured, parse

POSSIBLE = [
    Variant(device, engine, precision, calibration)
    for engine, facts in ENGINES.items()
    for device, precisions in facts.precisions.items()
    for precision in precisions
    for calibration in (
        [f"{method}-{count}" for method in facts.methods for count in (1, 512, 12000)]
        if precision in CALIBRATED
        else [None]
    )
]
CONFIG: dict[str, Any] = {
    "devices": "auto",
    "engines": {
        "pytorch": ["fp32", "bf16"],
        "onnxruntime": ["fp32", "int8"],
        "openvino": ["fp32", "bf16", "int8"],
        "tensorrt": ["fp16"],
    },
    "calibration": {"methods": ["minmax", "nncf"], "samples": [64, 512]},
}


def names(config: dict[str, Any]) -> list[str]:
    return [str(variant) for variant in configured(config)]


@pytest.mark.parametrize("variant", POSSIBLE, ids=str)
def test_a_name_is_read_as_the_variant_that_it_was_written_from(variant: Variant) -> None:
    assert parse(str(variant)) == variant


def test_possible_names_are_all_different() -> None:
    assert len({str(variant) for variant in POSSIBLE}) == len(POSSIBLE) > 20


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cpu-tensorrt-fp16", "tensorrt runs on cuda only"),
        ("cuda-openvino-bf16", "openvino runs on cpu only"),
        ("cpu-pytorch-fp16", "pytorch on cpu has fp32, bf16"),
        ("cuda-tensorrt-int8-fp16", "int8-fp16 needs calibration"),
        ("cpu-onnxruntime-int8", "int8 needs calibration"),
        ("cpu-pytorch-fp32-minmax-64", "fp32 takes no calibration"),
        ("cpu-openvino-int8-minmax-64", "openvino is calibrated with nncf"),
        ("cpu-onnxruntime-int8-nncf-64", "onnxruntime is calibrated with minmax"),
        ("cpu-onnxruntime-int8-minmax", "no variant; a name is device-engine-precision"),
        ("cpu-onnxruntime-int8-minmax-0", "no variant"),
        ("cpu-onnxruntime-int8-minmax-064", "no variant"),
        ("cpu-pytorch-fp32\n", "no variant"),
        ("cpu-pytorch-fp32-", "no variant"),
        ("cpu_pytorch_fp32", "no variant"),
        ("tpu-pytorch-fp32", "devices cpu, cuda"),
        ("", "no variant"),
    ],
)
def test_an_impossible_name_is_rejected_with_its_reason(name: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        parse(name)
    assert str(caught.value).startswith(f"{name}: ")


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
    assert {str(baseline(device)) for device in wanted} <= set(found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("devices", "engines", "reason"),
    [
        (["cpu"], {"tensorrt": ["fp16"]}, "cpu-tensorrt-fp16: .*tensorrt runs on cuda only"),
        (["cpu"], {"openvino": ["fp16"]}, "cpu-openvino-fp16: .*has fp32, bf16, int8"),
        ("auto", {"openvino": ["fp16"]}, "cpu-openvino-fp16: .*has fp32, bf16, int8"),
        ("auto", {"pytorch": ["int8"]}, "pytorch: int8 needs|pytorch on cpu has fp32, bf16"),
    ],
)
def test_what_no_configured_device_can_do_is_a_config_error(
    devices: Any, engines: dict[str, list[str]], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        configured({**CONFIG, "devices": devices, "engines": engines})


def test_int8_without_a_method_that_the_engine_knows_is_a_config_error() -> None:
    calibration = {"methods": ["minmax"], "samples": [64]}
    with pytest.raises(ConfigError, match=r"engines\.openvino: int8 needs .* nncf"):
        configured({**CONFIG, "calibration": calibration})


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("cpu-onnxruntime-int8-minmax-512", "u8s8"),
        ("cuda-onnxruntime-int8-minmax-512", "s8s8"),
        ("cuda-tensorrt-int8-fp16-minmax-512", "s8s8"),
        ("cpu-onnxruntime-fp32", None),
        ("cpu-openvino-int8-nncf-512", None),
    ],
)
def test_the_scheme_belongs_to_the_target(name: str, scheme: str | None) -> None:
    assert parse(name).scheme == scheme
