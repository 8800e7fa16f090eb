import pytest
from tightrope import variants
from tightrope.errors import ConfigError


def test_the_host_of_a_name_is_part_of_the_place_of_its_variant() -> None:
    found = variants.parse("cpu@genoa-openvino-int8-nncf-512")
    assert found == variants.Variant("cpu", "openvino", "int8", "nncf-512", "genoa")
    assert (found.place, found.rest) == ("cpu@genoa", "int8-nncf-512")
    assert str(found.anywhere) == "cpu-openvino-int8-nncf-512"
    assert str(found) == "cpu@genoa-openvino-int8-nncf-512"
    assert (variants.device_of(found.place), variants.host_of(found.place)) == ("cpu", "genoa")
    assert (variants.device_of("cpu"), variants.host_of("cpu")) == ("cpu", None)
    # what is built from another engine is built from that of the same host
    assert variants.parse("cpu@genoa-openvino-int8-bf16-nncf-512").quantized_as == found
    assert variants.baseline("cpu", "path:m", "genoa") == variants.parse("cpu@genoa-pytorch-fp32")


def test_an_impossible_name_is_rejected_with_its_reason() -> None:
    for name, reason in (
        ("cpu-tensorrt-fp16", "tensorrt runs on cuda only"),
        ("cuda-openvino-bf16", "openvino runs on cpu only"),
        ("cpu-pytorch-fp16", "pytorch on cpu has fp32, bf16, int8-dynamic"),
        ("cpu-torchscript-int8-dynamic", "torchscript on cpu has fp32, bf16$"),
        ("cuda-compile-fp8-minmax-64", "fp8 takes no calibration"),
        ("cuda-tensorrt-fp8", "fp8 needs calibration"),
        ("cpu-onnxruntime-int8", "int8 needs calibration"),
        ("cpu-onnxruntime-int8-dynamic-minmax-64", "int8-dynamic takes no calibration"),
        ("cpu-inductor-int8-nncf-64", "inductor is calibrated with minmax"),
        ("cpu-onnxruntime-int8-nncf-64", "onnxruntime is calibrated with minmax"),
        ("cpu-openvino-given-nncf-64", "given takes no calibration"),
        ("cpu-onnxruntime-int8-minmax", "no variant; a name is device-engine-precision"),
        ("cpu-onnxruntime-int8-minmax-0", "no variant"),
        ("cpu-onnxruntime-int8-minmax-064", "no variant"),
        ("cpu-pytorch-fp32\n", "no variant"),
        ("cpu-pytorch-fp32-", "no variant"),
        ("cpu_pytorch_fp32", "no variant"),
        ("tpu-pytorch-fp32", "devices cpu, cuda"),
        *((name, "no variant") for name in ("", "cpu@-pytorch-fp32", "cpu@a b-pytorch-fp32")),
        ("cpu-openvino-int8-nncf-8-smooth", "takes no repair"),
        ("cpu-inductor-int8-minmax-8-bias", "takes no repair"),
    ):
        with pytest.raises(ConfigError, match=reason) as caught:
            variants.parse(name)
        shown = name.replace("\n", "\\n")  # a message stays one line
        assert str(caught.value).startswith(f"{shown}: ")
