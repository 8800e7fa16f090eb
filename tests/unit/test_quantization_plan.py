"""Which quantized variants are timed beside which in float."""

from tightrope.quantization_plan import float_rivals
from tightrope.variants import parse

BASELINES = {name: {"cpu": "cpu-pytorch-fp32", "cuda": "cuda-pytorch-fp32"} for name in "mn"}


def rivals(*names: str, asked: bool = True) -> list[tuple[str, str, str]]:
    """The pairs of these jobs, each named `model:variant`."""
    jobs = [(name.partition(":")[0], parse(name.partition(":")[2])) for name in names]
    found = float_rivals({"compare_quantized": asked}, jobs, BASELINES)
    return [(model, str(one), str(rival)) for model, one, rival in found]


def test_every_quantized_variant_has_each_of_its_engine_in_float() -> None:
    assert rivals(
        "m:cpu-pytorch-fp32",
        "m:cpu-openvino-fp32",
        "m:cpu-openvino-int8-nncf-8",
        "m:cpu-openvino-bf16",
        "m:cpu-openvino-int8-bf16-nncf-8",
        "m:cpu-onnxruntime-int8-dynamic",
    ) == [
        ("m", f"cpu-openvino-{one}-nncf-8", f"cpu-openvino-{rival}")
        for one in ("int8", "int8-bf16")
        for rival in ("fp32", "bf16")
    ]


def test_models_and_devices_are_apart() -> None:
    assert (
        rivals(
            "m:cpu-onnxruntime-fp32",
            "n:cpu-onnxruntime-int8-minmax-8",
            "m:cuda-onnxruntime-int8-minmax-8",
            "n:cuda-onnxruntime-fp16",
        )
        == []
    )


def test_beside_the_baseline_every_variant_is_timed_anyway() -> None:
    assert rivals("m:cpu-pytorch-fp32", "m:cpu-pytorch-bf16", "m:cpu-pytorch-int8-dynamic") == [
        ("m", "cpu-pytorch-int8-dynamic", "cpu-pytorch-bf16")
    ]


def test_the_configuration_can_leave_it_out() -> None:
    jobs = ("m:cpu-onnxruntime-fp32", "m:cpu-onnxruntime-int8-minmax-8")
    assert len(rivals(*jobs)) == 1
    assert rivals(*jobs, asked=False) == []
