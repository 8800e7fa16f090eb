"""ONNX Runtime with its CPU, CUDA and TensorRT execution providers."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from tightrope.engine_table import RANGES, Engine
from tightrope.inputs.arrays import Arrays, example_of
from tightrope.onnx.attention import with_attention_operators
from tightrope.onnx.file import load_onnx, save_onnx, signature_of
from tightrope.runtimes.onnxruntime.session import Options, open_session, profiled, session_options
from tightrope.variants import GIVEN

SPEC = Engine(
    precisions={
        "cpu": ("fp32", "fp16", "int8", "int8-auto", "int8-dynamic"),
        # no int8: its CUDA provider fuses no Q/DQ (microsoft/onnxruntime issues 12229, 15260)
        "cuda": ("fp32", "fp16"),
    },
    libraries=("onnxruntime",),
    source="onnx",
    about="its CPU and CUDA providers, or its TensorRT provider",
    colour=("#0045e4", "#1d63ff"),
    methods=RANGES,
    schemes={"cpu": "u8s8"},
    reducible=("int8-dynamic",),
    cuda=("graphs",),
    # only ARM has fp16 kernels; elsewhere it casts to fp32 and back
    instructions={"fp16": ("asimdhp",)},
    given=("cpu",),
    profiled=True,
    bundled=("onnxruntime",),
)
FILE = "model.onnx"
FUSED = "com.microsoft"
# the provider of the options whose engine is one of TensorRT
TENSORRT = "tensorrt"


def build(
    source: Path,
    target: Path,
    *,
    precision: str,
    device: str,
    threads: int,
    options: Options,
    state: Path,
) -> dict[str, Any]:
    """Write the ONNX file `source` (Q/DQ for int8 and given) into folder `target` and profile it.

    fp16 converts all but the types of inputs and outputs, int8-dynamic quantizes the weights; with
    `fusions` in the options, ONNX Runtime's transformer optimizer runs first, with
    `attention_operator` attention becomes one operator. On a GPU CUDA graphs are tried; where the
    provider refuses them, `graphs_refused` is the reason, and the engine runs without. With the
    provider `tensorrt` the folder `state` keeps the timing cache for later builds. `provider`
    counts the operators by provider.
    """
    model = load_onnx(source)
    example = example_of(signature_of(model), 1)
    if options["fusions"] and precision not in ("int8", "int8-auto", GIVEN):
        model = fused(model)
    if precision == "int8-dynamic":
        model = dynamically_quantized(model, reduced=options["reduce_range"])
    by_tensorrt = options.get("provider") == TENSORRT
    without = (GIVEN, "fp32") if by_tensorrt else (GIVEN,)  # see `model_to_build`
    if options["attention_operator"] and precision not in without:
        model = with_attention_operators(model)
    facts: dict[str, Any]
    if by_tensorrt:
        from tightrope.runtimes.onnxruntime import tensorrt_provider

        facts = tensorrt_provider.build(model, target / FILE, precision, threads, options, state)
    else:
        if precision == "fp16":
            from onnxruntime.transformers.float16 import convert_float_to_float16

            model = convert_float_to_float16(model, keep_io_types=True)
        save_onnx(model, target / FILE)
        if device == "cuda":
            facts = tried_on_gpu(target / FILE, threads, options, example)
        else:
            executed, provider = profiled(target / FILE, threads, options, example=example)
            facts = {"executed": executed, "provider": provider}
    return {"format": "onnx", **facts}


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """Return `run(inputs) -> float32 logits [batch, classes]` for requests of any size."""
    if options.get("provider") == TENSORRT:
        from tightrope.runtimes.onnxruntime import tensorrt_provider

        return tensorrt_provider.load(path / FILE, precision, threads, options)
    if device == "cuda":
        # imports PyTorch, for its buffers and streams; an engine on the CPU needs neither
        from tightrope.runtimes.cuda_program import with_graphs
        from tightrope.runtimes.onnxruntime import gpu

        gpu.prepare()
        return run_on_gpu(path / FILE, threads, with_graphs(options, path))
    session = open_session(path / FILE, session_options(threads, options))

    def run(inputs: Arrays) -> Any:
        return session.run(None, inputs)[0]

    return run


def tried_on_gpu(path: Path, threads: int, options: Options, example: Arrays) -> dict[str, Any]:
    """Return `executed`, `provider` and `graphs_refused`.

    Operators are counted without CUDA graphs, whose replay names none.
    """
    from tightrope.runtimes.cuda_program import graphs_of
    from tightrope.runtimes.onnxruntime import gpu

    gpu.prepare()
    plain = gpu.cuda_provider({**options, "graphs": False})
    executed, provider = profiled(path, threads, options, [plain], example=example)
    load = partial(run_on_gpu, path, threads, options)
    return {"executed": executed, "provider": provider, **graphs_of(options, load, example)}


def run_on_gpu(path: Path, threads: int, options: Options) -> Any:
    """Return `run` of the CUDA provider, with CUDA graphs if the options have `graphs`."""
    from tightrope.runtimes.onnxruntime import gpu

    chosen = session_options(threads, options)
    return gpu.bound_runner(path, chosen, [gpu.cuda_provider(options)], options)


def fused(model: onnx.ModelProto) -> onnx.ModelProto:
    """Fuse attention, skip-layer-norm and bias-gelu where their patterns match."""
    from onnxruntime.transformers import optimizer

    found = optimizer.optimize_model(model, model_type="bert", opt_level=0).model
    # the optimizer does not declare the domain of its fused operators
    if FUSED not in {one.domain for one in found.opset_import}:
        found.opset_import.append(onnx.helper.make_opsetid(FUSED, 1))
    return found


def dynamically_quantized(model: onnx.ModelProto, *, reduced: bool) -> onnx.ModelProto:
    """Quantize weights to int8 per output channel; activations to u8 by the range of each call.

    `reduced` limits weights to 7 bits.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, FILE)
        quantize_dynamic(
            model,
            target,
            per_channel=True,
            reduce_range=reduced,
            weight_type=QuantType.QInt8,
            # output type of fused operators, which shape inference does not know
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )
        return onnx.load(target)
