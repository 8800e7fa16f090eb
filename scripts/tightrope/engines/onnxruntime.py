"""ONNX Runtime on its CPU provider."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from tightrope.errors import ArtifactError
from tightrope.executed import Executed, counted
from tightrope.inputs import Arrays
from tightrope.onnx_graph import load_onnx, max_sequence, save_onnx
from tightrope.supervise import WorkFailed

FILE = "model.onnx"
PROVIDER = "CPUExecutionProvider"
FUSED = "com.microsoft"
LEVELS = {
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
}
TYPES = {"float": "fp32", "float16": "fp16", "bfloat16": "bf16", "int8": "int8", "uint8": "int8"}
Options = dict[str, Any]


def build(
    source: Path, target: Path, *, precision: str, device: str, threads: int, options: Options
) -> dict[str, Any]:
    """Put the ONNX file `source` (Q/DQ for int8) into folder `target`, profiled in a session.

    fp16 converts it, int8-dynamic quantizes its weights; `fusions` of the options runs ONNX
    Runtime's optimizer for transformers before.
    """
    model = load_onnx(source)
    longest = max_sequence(model)
    if options["fusions"] and precision not in ("int8", "int8-auto"):
        model = fused(model)
    if precision == "fp16":
        model = in_fp16(model)
    if precision == "int8-dynamic":
        model = dynamically_quantized(model)
    save_onnx(model, target / FILE)
    executed, provider = profiled(target / FILE, threads, options)
    return {
        "format": "onnx",
        "executed": executed,
        "provider": provider,
        "max_sequence": longest,
    }


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """`run(inputs) -> float32 logits [batch, classes]` for any batch and sequence."""
    session = open_session(path / FILE, session_options(threads, options))

    def run(inputs: Arrays) -> Any:
        return session.run(None, inputs)[0]

    return run


def session_options(threads: int, options: Options) -> onnxruntime.SessionOptions:
    """So many intra-op threads, which sleep between calls; the rest as configured."""
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = threads
    chosen.inter_op_num_threads = 1
    chosen.log_severity_level = 3
    chosen.graph_optimization_level = LEVELS[options["optimization"]]
    chosen.enable_cpu_mem_arena = chosen.enable_mem_pattern = options["arena"]
    # a spinning pool of an idle engine would slow down the engine that is timed next to it
    chosen.add_session_config_entry("session.force_spinning_stop", "1")
    chosen.add_session_config_entry(
        "session.intra_op.allow_spinning", str(int(options["spinning"]))
    )
    return chosen


def open_session(path: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    """A session on the CPU provider; raises ArtifactError for a file that is no ONNX."""
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=[PROVIDER])
    except onnxruntime.capi.onnxruntime_pybind11_state.InvalidProtobuf as error:
        raise ArtifactError(f"{path}: no readable ONNX file; delete it and run again") from error


def fused(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with attention, skip-layer-norm and bias-gelu fused where their patterns match."""
    from onnxruntime.transformers import optimizer

    found = optimizer.optimize_model(model, model_type="bert", opt_level=0).model
    # the fused operators are of its own domain, which it does not declare
    if FUSED not in {one.domain for one in found.opset_import}:
        found.opset_import.append(onnx.helper.make_opsetid(FUSED, 1))
    return found


def in_fp16(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with weights and activations in fp16, its inputs and outputs as they were."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    return convert_float_to_float16(model, keep_io_types=True)


def dynamically_quantized(model: onnx.ModelProto) -> onnx.ModelProto:
    """Weights in int8 per output channel; activations in u8 by the range of each call."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, FILE)
        quantize_dynamic(
            model,
            target,
            per_channel=True,
            weight_type=QuantType.QInt8,
            # the types of what a fused operator gives, which shape inference does not know
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )
        return onnx.load(target)


def profiled(path: Path, threads: int, options: Options) -> tuple[Executed, dict[str, int]]:
    """What one call runs after optimization, by class and type; how many on which provider.

    Raises WorkFailed where a provider took part that was not asked for.
    """
    with tempfile.TemporaryDirectory() as folder:
        chosen = session_options(threads, options)
        chosen.enable_profiling = True
        chosen.profile_file_prefix = str(Path(folder, "profile"))
        session = open_session(path, chosen)
        session.run(None, {one.name: np.ones((1, 8), np.int64) for one in session.get_inputs()})
        events = json.loads(Path(session.end_profiling()).read_text())
    nodes = [one["args"] for one in events if one["name"].endswith("_kernel_time")]
    providers = counted((node["provider"], "operators") for node in nodes)
    if set(providers) != {PROVIDER}:
        raise WorkFailed(f"fell back to {', '.join({*providers} - {PROVIDER})}", transient=False)
    kinds = [(node["op_name"], operand_type(node)) for node in nodes]
    executed = counted((kind, name) for kind, name in kinds if name is not None)
    return executed, {name: counts["operators"] for name, counts in providers.items()}


def operand_type(node: dict[str, Any]) -> str | None:
    """int8 where an operand is, else the type of the first one; None for counting in integers.

    A runtime's name for int8 by the range of each call is DynamicQuantizeMatMul, of which the
    first operand is still in fp32.
    """
    names = [next(iter(operand)) for operand in node["input_type_shape"]]
    kinds = [TYPES[name] for name in names if name in TYPES]
    return "int8" if "int8" in kinds else next(iter(kinds), None)
