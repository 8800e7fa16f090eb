"""Table of engines: capabilities, source and requirements, one entry per engine."""

from typing import NamedTuple

# calibration methods for the ranges of an ONNX file; nncf collects its own statistics
RANGES = ("minmax", "entropy", "percentile", "random", "qat")
# per type, names of a host's `isa` with multiply instructions for it; instruction sets that only
# convert (avx_ne_convert) or store the type compute products in fp32
INSTRUCTIONS = {"bf16": ("avx512_bf16", "amx_bf16", "bf16"), "fp16": ("avx512_fp16", "asimdhp")}
# for oneDNN; with only AVX-512 it computes bf16 in fp32, and with only AVX2 PyTorch does not use it
ONEDNN = {"bf16": INSTRUCTIONS["bf16"]}


class Engine(NamedTuple):
    """Capabilities, source and requirements of one runtime."""

    # by device
    precisions: dict[str, tuple[str, ...]]
    # distributions whose versions shape the engine
    libraries: tuple[str, ...]
    # "checkpoint" or "onnx"
    source: str
    # calibration methods
    methods: tuple[str, ...] = ()
    # scheme of the quantized ONNX that it is built from, by device; None where it quantizes itself
    schemes: dict[str, str] | None = None
    # methods by which it quantizes itself, though it has a scheme for the others
    own_statistics: tuple[str, ...] = ()
    # precisions that it quantizes itself and, with `reduce_range`, within 7 bits; PyTorch's
    # int8-dynamic is none of them: it always uses 7 bits
    reducible: tuple[str, ...] = ()
    # compiles one program per bucket of `buckets`
    static: bool = False
    # needs a compiler: generates C++, or links generated code
    compiler: bool = False
    # keys of `cuda` in the configuration that it uses on a GPU
    cuda: tuple[str, ...] = ()
    # per type, the CPU instruction sets of which it needs one; other types need none
    instructions: dict[str, tuple[str, ...]] | None = None
    # devices on which it runs an ONNX file that is quantized already as it is
    given: tuple[str, ...] = ()


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
        {"cpu": ("fp32", "bf16"), "cuda": ("fp32", "tf32", "bf16", "fp16", "int8-dynamic", "fp8")},
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
        ("minmax", "qat"),
        reducible=("int8",),
        compiler=True,
        cuda=("autotune", "graphs"),
        instructions=ONEDNN,
    ),
    "onnxruntime": Engine(
        {
            "cpu": ("fp32", "fp16", "int8", "int8-auto", "int8-dynamic"),
            # no int8: its CUDA provider fuses no Q/DQ (microsoft/onnxruntime issues 12229, 15260)
            "cuda": ("fp32", "fp16"),
        },
        ("onnxruntime",),
        "onnx",
        RANGES,
        {"cpu": "u8s8"},
        reducible=("int8-dynamic",),
        cuda=("graphs",),
        # only ARM has fp16 kernels; elsewhere it casts to fp32 and back
        instructions={"fp16": ("asimdhp",)},
        given=("cpu",),
    ),
    "openvino": Engine(
        {"cpu": ("fp32", "bf16", "int8", "int8-bf16")},
        ("openvino", "nncf"),
        "onnx",
        ("nncf", "qat"),
        {"cpu": "u8s8"},
        own_statistics=("nncf",),
        reducible=("int8",),
        static=True,
        # no bf16 on ARM; with only AVX2 it silently executes fp32
        instructions={"bf16": ("avx512_bf16", "amx_bf16")},
        given=("cpu",),
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
        given=("cuda",),
    ),
}


class BuildJob(NamedTuple):
    """Memory in MB and longest time in minutes of a build."""

    mem_mb: int = 8000
    minutes: int = 30


# by engine; apart from ENGINES, which every job reads, so that another number here builds nothing
BUILD_JOBS = {
    "compile": BuildJob(16000, 60),
    "inductor": BuildJob(16000, 60),
    "openvino": BuildJob(16000, 60),
    "tvm": BuildJob(16000, 240),
    "tensorrt": BuildJob(16000, 120),
}
# the distributions that its program in a bundle imports, beside those that every one imports
BUNDLED = {
    "onnxruntime": ("onnxruntime",),
    "openvino": ("openvino",),
    "pytorch": ("torch", "transformers"),
    "inductor": ("torch",),
    "torchscript": ("torch",),
    "tvm": ("apache-tvm", "safetensors"),
}
