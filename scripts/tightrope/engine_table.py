"""What each runtime can do, what it is built from and what it needs: one entry an engine."""

from typing import NamedTuple

# of the statistics of an ONNX file; nncf collects its own
RANGES = ("minmax", "entropy", "percentile", "random")
# names of `isa` of a host whose instructions multiply numbers of that type, by type; those that
# only convert (avx_ne_convert) or store them leave the products to fp32
INSTRUCTIONS = {
    "bf16": ("avx512_bf16", "amx_bf16", "bf16"),
    "fp16": ("avx512_fp16", "asimdhp"),
}
# oneDNN's; with AVX-512 alone it computes bf16 in fp32, and with AVX2 alone PyTorch does without it
ONEDNN = {"bf16": INSTRUCTIONS["bf16"]}


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
    # precisions in which it multiplies u8 by s8 that it quantized itself, with `reduce_range`
    # within 7 bits; PyTorch's int8-dynamic always is
    reducible: tuple[str, ...] = ()
    # compiles one program for each bucket of `buckets`
    static: bool = False
    # generates C++ or links what it generated
    compiler: bool = False
    # keys of `cuda` of the configuration that it reads on a GPU
    cuda: tuple[str, ...] = ()
    # by type the instructions with one of which it computes in it on a CPU; unnamed types need none
    instructions: dict[str, tuple[str, ...]] | None = None


ENGINES = {
    "pytorch": Engine(
        {"cpu": ("fp32", "bf16", "int8-dynamic"), "cuda": ("fp32", "tf32", "bf16", "fp16")},
        ("torch", "transformers"),
        "checkpoint",
        cuda=("attention",),
        instructions=ONEDNN,
    ),
    "torchscript": Engine(
        {"cpu": ("fp32", "bf16"), "cuda": ("fp32", "fp16")},
        ("torch", "transformers"),
        "checkpoint",
        cuda=("graphs",),
        instructions=ONEDNN,
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
        instructions=ONEDNN,
    ),
    "inductor": Engine(
        {"cpu": ("fp32", "bf16", "int8"), "cuda": ("fp32", "tf32", "bf16", "fp16")},
        ("torch", "transformers", "torchao"),
        "checkpoint",
        ("minmax",),
        reducible=("int8",),
        compiler=True,
        cuda=("autotune", "graphs"),
        instructions=ONEDNN,
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
        reducible=("int8-dynamic",),
        cuda=("graphs",),
        # its kernels for fp16 are ARM's; elsewhere it casts to fp32 and back
        instructions={"fp16": ("asimdhp",)},
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
        reducible=("int8",),
        static=True,
        # on ARM it has no bf16; with AVX2 alone it executes fp32 unasked
        instructions={"bf16": ("avx512_bf16", "amx_bf16")},
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
