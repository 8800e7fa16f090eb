"""OpenVINO on the CPU; int8 by NNCF's transformer preset."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openvino
from openvino import frontend

from tightrope.inputs import Arrays
from tightrope.onnx_graph import load_onnx

FILE = "model.xml"
# unsaid, a model in fp32 runs in bf16 where the CPU has it
HINTS = {"fp32": "f32", "bf16": "bf16", "int8": "f32"}
TYPES = {"f32": "fp32", "bf16": "bf16", "f16": "fp16", "i8": "int8", "u8": "int8"}
PRODUCTS = ("FullyConnected", "MatMul", "Convolution", "ScaledDotProductAttention")


def build(
    source: Path,
    target: Path,
    *,
    precision: str,
    threads: int,
    batches: list[Arrays] | None = None,
) -> dict[str, Any]:
    """Write the OpenVINO IR of ONNX file `source` into folder `target`.

    int8 needs `batches`, the calibration samples from which NNCF collects its statistics.
    """
    load_onnx(source)  # it is the file that was written
    with bare_reasons():
        model = openvino.convert_model(source)
    if precision == "int8":
        model = quantized(model, batches or [])
    openvino.save_model(model, target / FILE, compress_to_fp16=False)
    return {"format": "openvino-ir", "executed": executed(compiled(target, precision, threads))}


def load(path: Path, *, precision: str, threads: int) -> Any:
    """`run(inputs) -> float32 logits [batch, classes]` for any batch and sequence."""
    request = compiled(path, precision, threads).create_infer_request()

    def run(inputs: Arrays) -> Any:
        request.infer(inputs, share_inputs=True)
        return request.get_output_tensor(0).data.copy()

    return run


def compiled(path: Path, precision: str, threads: int) -> openvino.CompiledModel:
    """The IR in folder `path`, compiled for one stream with so many threads."""
    options = {
        "INFERENCE_PRECISION_HINT": HINTS[precision],
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
    }
    with bare_reasons():
        return openvino.Core().compile_model(path / FILE, "CPU", options)


@contextmanager
def bare_reasons() -> Iterator[None]:
    """Reduce errors of OpenVINO to their reason: places in its source code come before it."""
    try:
        yield
    except (RuntimeError, frontend.OpConversionFailure, frontend.GeneralFailure) as error:
        places = ("Exception from ", "Check '")
        reasons = [line for line in str(error).splitlines() if line and not line.startswith(places)]
        raise RuntimeError(" ".join(reasons) or str(error)) from error


def quantized(model: openvino.Model, batches: list[Arrays]) -> openvino.Model:
    """`model` in int8 by NNCF: SmoothQuant, bias correction, symmetric weights."""
    import nncf

    return nncf.quantize(
        model,
        nncf.Dataset(batches),
        subset_size=len(batches),
        model_type=nncf.ModelType.TRANSFORMER,
        preset=nncf.QuantizationPreset.MIXED,
    )


def executed(model: openvino.CompiledModel) -> dict[str, dict[str, int]]:
    """How many products of each class the compiled program runs in which type."""
    counts: dict[str, Counter[str]] = {}
    for operation in model.get_runtime_model().get_ops():
        facts = operation.get_rt_info()
        kind = facts["layerType"].astype(str)
        if kind in PRODUCTS:
            name = facts["runtimePrecision"].astype(str)
            counts.setdefault(kind, Counter())[TYPES.get(name, name)] += 1
    return {kind: dict(count) for kind, count in sorted(counts.items())}
