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
    # keys of `cuda` of the configuration that it reads on a GPU
    cuda: tuple[str, ...] = ()


ENGINES = {
    "pytorch": Engine(
        {"cpu": ("fp32", "bf16", "int8-dynamic"), "cuda": ("fp32", "tf32", "bf16", "fp16")},
        ("torch", "transformers"),
        "checkpoint",
        cuda=("attention",),
    ),
    "torchscript": Engine(
        {"cpu": ("fp32", "bf16"), "cuda": ("fp32", "fp16")},
        ("torch", "transformers"),
        "checkpoint",
        cuda=("graphs",),
    ),
    "compile": Engine(
        {
            "cpu": ("fp32", "bf16"),
            "cuda": ("fp32", "tf32", "bf16", "fp16", "int8-dynamic", "fp8"),
        },
        ("torch", "transformers", "torchao"),
        "checkpoint",
        compiler=True,
        cuda=("attention", "autotune", "graphs"),
    ),
    "inductor": Engine(
        {"cpu": ("fp32", "bf16", "int8"), "cuda": ("fp32", "tf32", "bf16", "fp16")},
        ("torch", "transformers", "torchao"),
        "checkpoint",
        ("minmax",),
        compiler=True,
        cuda=("autotune", "graphs"),
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
        cuda=("graphs",),
    ),
    "onnxruntime_tensorrt": Engine(
        {"cuda": ("fp32", "fp16")},
        ("onnxruntime",),
        "onnx",
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
        ("tensorrt-cu13", "polygraphy", "torch"),
        "onnx",
        RANGES,
        {"cuda": "s8s8"},
        cuda=("graphs",),
    ),
}
