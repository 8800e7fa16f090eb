"""Which variants a configuration asks for, and what stands in for those that cannot be."""

from typing import Any

import hosts
import pytest
from tightrope.engine_table import ENGINES, INSTRUCTIONS
from tightrope.errors import ConfigError
from tightrope.machine.host import ISA
from tightrope.plan.variants import configured, fp32_fallback, only_emulated
from tightrope.variants import parse

MODELS = {
    "m": {"checkpoint": "hub:owner/name@1", "quantized": False},
    "onnx-only": {"checkpoint": "onnx:files/model.onnx", "quantized": False},
    "quantized": {"checkpoint": "onnx:files/quantized.onnx", "quantized": True},
}
CONFIG: dict[str, Any] = {
    **{"devices": "auto", "host": "auto", "hosts": {}, "emulated": False, "models": MODELS},
    "engines": {
        **{"pytorch": ["fp32", "bf16"], "onnxruntime": ["fp32", "int8"]},
        **{"openvino": ["fp32", "bf16", "int8"], "tensorrt": ["fp16"]},
    },
    "calibration": {"methods": ["minmax", "nncf"], "samples": [64, 512]},
    "repairs": {},
}


def names(model: str = "m", cpu: dict[str, Any] = hosts.AMX, **changes: Any) -> list[str]:
    return [str(variant) for variant in configured({**CONFIG, **changes}, model, cpu)]


def calibrated(*methods: str, samples: tuple[int, ...] = (64,)) -> dict[str, Any]:
    return {"calibration": {"methods": [*methods], "samples": [*samples]}}


@pytest.mark.parametrize("devices", ["auto", ["cpu"], ["cuda"]])
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"engines": {"openvino": ["fp16"]}}, "openvino: fp16 .*openvino has on cpu fp32, bf16, i"),
        ({"engines": {"onnxruntime": ["int8-bf16"]}}, "onnxruntime has on cpu fp32, .*; on cuda f"),
        ({"engines": {"pytorch": ["int8"]}}, "pytorch: int8 exists on no device"),
    ],
)
def test_what_no_device_can_do_is_a_config_error(devices, changes, reason) -> None:
    with pytest.raises(ConfigError, match=reason):
        names(devices=devices, **changes)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_engine_needs_of_a_cpu_are_instructions_that_a_host_is_described_with(engine):
    for number, needed in (ENGINES[engine].instructions or {}).items():
        assert number in ENGINES[engine].precisions["cpu"]
        assert set(needed) <= set(INSTRUCTIONS[number]) <= set(ISA)


NO_BF16 = dict.fromkeys(("AVX2", "AVX-512"), "bf16 instructions")
NO_OPENVINO_BF16 = {**NO_BF16, "ARM": "bf16 instructions that openvino uses"}
NO_FP16 = dict.fromkeys(("AVX2", "AVX-512"), "fp16 instructions")


def test_the_reason_names_the_type_and_the_engine_that_does_not_use_it() -> None:
    for variant, lacking in (
        *((name, {}) for name in ("cpu-pytorch-fp32", "cpu-pytorch-int8-dynamic")),
        *((name, {}) for name in ("cpu-onnxruntime-int8-minmax-64", "cuda-pytorch-bf16")),
        *((f"cpu-{engine}-bf16", NO_BF16) for engine in ("pytorch", "inductor")),
        *((f"cpu-openvino-{one}", NO_OPENVINO_BF16) for one in ("bf16", "int8-bf16-nncf-64")),
        ("cpu-onnxruntime-fp16", {**NO_FP16, "AMX": "fp16 instructions that onnxruntime uses"}),
    ):
        for kind, host in hosts.HOSTS.items():
            why = f"not supported by this CPU: no {lacking.get(kind)}; it would be emulated"
            assert only_emulated(CONFIG, parse(variant), host) == (why if kind in lacking else None)
            for change in ({"emulated": True}, {"host": "node-type"}):
                assert only_emulated({**CONFIG, **change}, parse(variant), host) is None
                assert names(cpu=host, **change) == names(cpu=hosts.AMX, **change)


OPENVINO = ["cpu-openvino-bf16", "cpu-openvino-int8-nncf-64", "cpu-openvino-int8-bf16-nncf-64"]


def test_fp32_stands_in_for_the_float_that_would_be_emulated() -> None:
    for kind, precisions, planned in (
        ("AVX2", ["bf16", "int8"], ["cpu-openvino-fp32", *OPENVINO[:2]]),
        ("AVX2", ["bf16", "int8", "int8-bf16"], ["cpu-openvino-fp32", *OPENVINO]),
        ("ARM", ["bf16", "int8"], ["cpu-openvino-fp32", *OPENVINO[:2]]),
        ("AMX", ["bf16", "int8", "int8-bf16"], OPENVINO),
        ("AVX2", ["fp32", "bf16", "int8"], ["cpu-openvino-fp32", *OPENVINO[:2]]),
        # nothing quantized is left, or nothing in float was asked for
        ("AVX2", ["bf16"], OPENVINO[:1]),
        ("AVX2", ["bf16", "int8-bf16"], [OPENVINO[0], OPENVINO[2]]),
        ("AVX2", ["int8"], OPENVINO[1:2]),
    ):
        asked = {"engines": {"openvino": precisions}, "devices": ["cpu"], **calibrated("nncf")}
        assert names(cpu=hosts.HOSTS[kind], **asked) == ["cpu-pytorch-fp32", *planned]
    # nor beside a float that is none
    floats = [parse(one) for one in ("cpu-openvino-fp32", *OPENVINO[:2])]
    assert fp32_fallback(CONFIG, floats, hosts.AVX2) == []


REPAIRS = {
    "smooth": {"activations": None, "attention": False},
    "asym": {"activations": "asymmetric", "attention": False},
    "mha": {"activations": None, "attention": True},
}


def test_each_repair_is_one_more_variant_of_engines_fed_by_quantized_onnx() -> None:
    """TensorRT takes no asymmetric activations, and alone quantizes attention."""
    engines = {
        **{"onnxruntime": ["int8", "int8-auto"], "openvino": ["int8"]},
        "tensorrt": ["int8-fp16", "fp8"],
    }
    found = names(engines=engines, repairs=REPAIRS, **calibrated("minmax", "nncf"))
    usual, zero_point_0 = ("", "-smooth", "-asym"), ("", "-smooth", "-mha")
    assert [name for name in found if "fp32" not in name] == [
        *(f"cpu-onnxruntime-int8-minmax-64{repair}" for repair in usual),
        "cpu-onnxruntime-int8-auto-minmax-64",
        "cpu-openvino-int8-nncf-64",
        *(f"cuda-tensorrt-int8-fp16-minmax-64{repair}" for repair in zero_point_0),
        *(f"cuda-tensorrt-fp8-minmax-64{repair}" for repair in zero_point_0),
    ]
    one = parse("cpu-onnxruntime-int8-minmax-64-smooth")
    assert (one.calibration, one.statistics) == ("minmax-64-smooth", "minmax-64")
    assert (one.repair, one.scheme) == ("smooth", "u8s8")
    assert parse("cpu-onnxruntime-int8-minmax-64").repair is None
    with pytest.raises(ConfigError, match="takes no repair"):
        parse("cpu-onnxruntime-int8-auto-entropy-8-smooth")


def test_int8_auto_is_searched_on_real_samples() -> None:
    asked = {"devices": ["cpu"], "engines": {"onnxruntime": ["int8-auto"]}}
    found = names(**asked, **calibrated("entropy", "random", "nncf", samples=(8, 16)))
    expected = [f"cpu-onnxruntime-int8-auto-entropy-{count}" for count in (8, 16)]
    assert [name for name in found if "int8" in name] == expected
    words = r"int8-auto needs one of .* minmax, entropy, percentile,"
    with pytest.raises(ConfigError, match=words):
        names(**asked, **calibrated("random"))


EVERY_PRECISION = {
    "inductor": ["int8"],
    "onnxruntime": ["fp32", "int8", "int8-auto", "int8-dynamic"],
    "openvino": ["bf16", "int8", "int8-bf16"],
    "tensorrt": ["fp16", "int8-fp16", "fp8"],
}


def test_of_a_file_that_is_quantized_already_calibrated_precisions_are_one_variant_given() -> None:
    assert names("quantized", engines=EVERY_PRECISION) == [
        *("cpu-onnxruntime-fp32", "cuda-onnxruntime-fp32"),
        # of a checkpoint, so unavailable
        *("cpu-inductor-int8-minmax-64", "cpu-inductor-int8-minmax-512"),
        "cpu-onnxruntime-given",
        *("cpu-openvino-bf16", "cpu-openvino-given"),
        *("cuda-tensorrt-fp16", "cuda-tensorrt-given"),
    ]
    # on the devices that have the precision in whose place it stands
    found = names("quantized", engines={"onnxruntime": ["int8-auto"]})
    assert [name for name in found if "given" in name] == ["cpu-onnxruntime-given"]
    for model in ("m", "onnx-only"):
        assert not [one for one in names(model, engines=EVERY_PRECISION) if "given" in one]
