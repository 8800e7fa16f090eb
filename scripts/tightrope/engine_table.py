"""What each runtime can do, what it is built from and what it needs: one entry an engine."""

from typing import NamedTuple

# of the statistics of an ONNX file; nncf collects its own
RANGES = ("minmax", "entropy", "percentile", "random")


class Engine(NamedTuple):
    """What one runtime can do, what it is built from and what it needs."""

    # by device
    precisions: dict[str, tuple[str, ...]]
    # distributions whose versions shape it
    libraries: tuple[str, ...]
    # "checkpoint" or "onnx"
    source: str
    # calibration methods
    methods: tuple[str, ...] = ()
    # scheme of the quantized ONNX that it is fed, by device; empty where it quantizes itself
    schemes: dict[str, str] | None = None
    # compiles one program for each bucket of `buckets`
    static: bool = False
    # generates C++ or links what it generated
    compiler: bool = False


ENGINES = {
    "pytorch": Engine(
        {"cpu": ("fp32", "bf16", "int8-dynamic"), "cuda": ("fp32", "tf32", "bf16", "fp16")},
        ("torch", "transformers"),
        "checkpoint",
    ),
    "torchscript": Engine({"cpu": ("fp32", "bf16")}, ("torch", "transformers"), "checkpoint"),
    "compile": Engine(
        {"cpu": ("fp32", "bf16")}, ("torch", "transformers"), "checkpoint", compiler=True
    ),
    "inductor": Engine(
        {"cpu": ("fp32", "bf16", "int8")},
        ("torch", "transformers", "torchao"),
        "checkpoint",
        ("minmax",),
        compiler=True,
    ),
    "onnxruntime": Engine(
        {
            "cpu": ("fp32", "fp16", "int8", "int8-auto", "int8-dynamic"),
            "cuda": ("fp32", "fp16", "int8"),
        },
        ("onnxruntime",),
        "onnx",
        RANGES,
        {"cpu": "u8s8", "cuda": "s8s8"},
    ),
    "openvino": Engine(
        {"cpu": ("fp32", "bf16", "int8", "int8-bf16")},
        ("openvino", "nncf"),
        "onnx",
        ("nncf",),
        static=True,
    ),
    "tvm": Engine(
        {"cpu": ("fp32",)},
        ("apache-tvm", "torch", "transformers"),
        "checkpoint",
        static=True,
        compiler=True,
    ),
    "tensorrt": Engine(
        {"cuda": ("fp32", "tf32", "bf16", "fp16", "int8-fp16", "fp8")},
        ("tensorrt-cu13",),
        "onnx",
        RANGES,
        {"cuda": "s8s8"},
    ),
}
