from typing import Any

import pytest
from tightrope.errors import ConfigError
from tightrope.variants import (
    CALIBRATED,
    ENGINES,
    METHODS,
    Variant,
    baseline,
    configured,
    is_onnx,
    parse,
)

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
MODELS = {
    "m": {"checkpoint": "hub:owner/name@1"},
    "onnx-only": {"checkpoint": "onnx:files/model.onnx"},
}
CONFIG: dict[str, Any] = {
    "devices": "auto",
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


def names(config: dict[str, Any], model: str = "m") -> list[str]:
    return [str(variant) for variant in configured(config, model)]


@pytest.mark.parametrize("variant", POSSIBLE, ids=str)
def test_a_name_is_read_as_the_variant_that_it_was_written_from(variant: Variant) -> None:
    assert parse(str(variant)) == variant


def test_possible_names_are_all_different() -> None:
    assert len({str(variant) for variant in POSSIBLE}) == len(POSSIBLE) > 40


@pytest.mark.parametrize("name", list(ENGINES))
def test_an_engine_says_what_it_is_built_from_and_how_it_is_calibrated(name: str) -> None:
    engine = ENGINES[name]
    assert engine.source in ("checkpoint", "onnx")
    assert engine.libraries
    assert set(engine.methods) <= set(METHODS)
    kinds = {one for precisions in engine.precisions.values() for one in precisions}
    # fp8 of an engine without methods takes the range of each call
    assert bool(kinds & set(CALIBRATED) - {"fp8"}) is bool(engine.methods)
    assert set(engine.schemes or {}) <= set(engine.precisions)


@pytest.mark.parametrize(
    ("name", "precision", "calibration"),
    [
        ("cpu-openvino-int8-bf16-nncf-512", "int8-bf16", "nncf-512"),
        ("cuda-tensorrt-int8-fp16-minmax-8", "int8-fp16", "minmax-8"),
        ("cpu-onnxruntime-int8-dynamic", "int8-dynamic", None),
        ("cpu-inductor-int8-minmax-512", "int8", "minmax-512"),
    ],
)
def test_a_precision_of_two_words_is_read_whole(
    name: str, precision: str, calibration: str | None
) -> None:
    found = parse(name)
    assert (found.precision, found.calibration) == (precision, calibration)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cpu-tensorrt-fp16", "tensorrt runs on cuda only"),
        ("cuda-openvino-bf16", "openvino runs on cpu only"),
        ("cpu-pytorch-fp16", "pytorch on cpu has fp32, bf16, int8-dynamic"),
        ("cpu-torchscript-int8-dynamic", "torchscript on cpu has fp32, bf16$"),
        ("cuda-tvm-fp32", "tvm runs on cpu only"),
        ("cuda-compile-fp8-minmax-64", "fp8 takes no calibration"),
        ("cuda-tensorrt-fp8", "fp8 needs calibration"),
        ("cpu-tvm-bf16", "tvm on cpu has fp32$"),
        ("cuda-tensorrt-int8-fp16", "int8-fp16 needs calibration"),
        ("cpu-onnxruntime-int8", "int8 needs calibration"),
        ("cpu-openvino-int8-bf16", "int8-bf16 needs calibration"),
        ("cpu-onnxruntime-int8-dynamic-minmax-64", "int8-dynamic takes no calibration"),
        ("cpu-pytorch-int8-dynamic-minmax-64", "int8-dynamic takes no calibration"),
        ("cpu-inductor-int8-nncf-64", "inductor is calibrated with minmax"),
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
    assert {f"{device}-pytorch-fp32" for device in wanted} <= set(found)
    assert len(found) == len(set(found))


def test_the_baseline_is_pytorch_or_where_there_is_an_onnx_file_only_onnx_runtime() -> None:
    for source in ("hub:owner/name@1", "path:onnx", "package:onnx/model", "scratch:bert"):
        assert not is_onnx(source)
        assert str(baseline("cpu", source)) == "cpu-pytorch-fp32"
    assert is_onnx("onnx:model.onnx")
    assert str(baseline("cpu", "onnx:model.onnx")) == "cpu-onnxruntime-fp32"
    assert str(baseline("cuda", "onnx:model.onnx")) == "cuda-onnxruntime-fp32"


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
    assert names({**CONFIG, "devices": ["cpu"], "engines": engines}) == [
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


@pytest.mark.parametrize(
    ("devices", "engines", "reason"),
    [
        (["cpu"], {"tensorrt": ["fp16"]}, "cpu-tensorrt-fp16: .*tensorrt runs on cuda only"),
        (["cpu"], {"openvino": ["fp16"]}, "cpu-openvino-fp16: .*has fp32, bf16, int8, int8-bf16"),
        ("auto", {"openvino": ["fp16"]}, "cpu-openvino-fp16: .*has fp32, bf16, int8, int8-bf16"),
        (["cpu"], {"torchscript": ["fp16"]}, "torchscript on cpu has fp32, bf16$"),
        (["cuda"], {"tvm": ["fp32"]}, "cuda-tvm-fp32: .*tvm runs on cpu only"),
        ("auto", {"onnxruntime": ["int8-bf16"]}, "onnxruntime on cpu has fp32, fp16, int8, int8-a"),
        ("auto", {"pytorch": ["int8"]}, "pytorch: int8 needs|pytorch on cpu has fp32, bf16"),
    ],
)
def test_what_no_configured_device_can_do_is_a_config_error(
    devices: Any, engines: dict[str, list[str]], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        configured({**CONFIG, "devices": devices, "engines": engines}, "m")


def test_int8_without_a_method_that_the_engine_knows_is_a_config_error() -> None:
    calibration = {"methods": ["minmax"], "samples": [64]}
    with pytest.raises(ConfigError, match=r"engines\.openvino: int8 needs .* nncf"):
        configured({**CONFIG, "calibration": calibration}, "m")


@pytest.mark.parametrize("engine", ["pytorch", "torchscript", "tvm"])
def test_int8_of_an_engine_that_has_none_is_refused_with_what_it_has(engine: str) -> None:
    config = {**CONFIG, "devices": ["cpu"], "engines": {engine: ["int8"]}}
    with pytest.raises(ConfigError, match=f"{engine} on cpu has fp32"):
        configured(config, "m")


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("cpu-onnxruntime-int8-minmax-512", "u8s8"),
        ("cuda-onnxruntime-int8-minmax-512", "s8s8"),
        ("cuda-tensorrt-int8-fp16-minmax-512", "s8s8"),
        ("cuda-tensorrt-fp8-minmax-512", "e4m3"),
        ("cuda-tensorrt-fp16", None),
        ("cpu-onnxruntime-fp32", None),
        ("cpu-openvino-int8-nncf-512", None),
        ("cpu-openvino-int8-bf16-nncf-512", None),
        ("cpu-inductor-int8-minmax-512", None),
        ("cpu-onnxruntime-int8-dynamic", None),
    ],
)
def test_the_scheme_belongs_to_the_target(name: str, scheme: str | None) -> None:
    assert parse(name).scheme == scheme


def test_each_repair_is_one_more_variant_of_engines_fed_by_quantized_onnx() -> None:
    repairs = {"smooth": {"activations": None}, "usual": {"activations": "symmetric"}}
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


@pytest.mark.parametrize(
    "name", ["cpu-openvino-int8-nncf-8-smooth", "cpu-inductor-int8-minmax-8-bias"]
)
def test_an_engine_that_quantizes_itself_takes_no_repair(name: str) -> None:
    with pytest.raises(ConfigError, match="takes no repair"):
        parse(name)
