"""ONNX Runtime with its CPU, CUDA and TensorRT execution providers, its sessions and profiler."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from msgspec.structs import replace

from tightrope.engine_table import RANGES, Engine
from tightrope.errors import ArtifactError, WorkFailed
from tightrope.inputs.arrays import Arrays, example_of
from tightrope.onnx.attention import with_attention_operators
from tightrope.onnx.file import load_onnx, save_onnx, signature_of
from tightrope.records.profile import OperatorTime
from tightrope.runtimes.executed import Executed, counted
from tightrope.runtimes.operator_times import Calls, Tensor, operator_time, per_call
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
CPU, KERNEL = "CPUExecutionProvider", "_kernel_time"
FLOATS = {"float": "fp32", "float16": "fp16", "bfloat16": "bf16", "int8": "int8", "uint8": "int8"}
# names and options, in order of preference
Providers = Sequence[tuple[str, dict[str, str]]]
Options = dict[str, Any]
TYPES = {**FLOATS, "int32": "int32", "int64": "int64", "bool": "bool"}
# seconds of a microsecond
MICRO = 1e-6


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
        from tightrope.engines import onnxruntime_gpu as gpu

        facts = gpu.build_by_tensorrt(model, target / FILE, precision, threads, options, state)
    else:
        if precision == "fp16":
            from onnxruntime.transformers.float16 import convert_float_to_float16

            model = convert_float_to_float16(model, keep_io_types=True)
        save_onnx(model, target / FILE)
        if device == "cuda":
            from tightrope.engines import onnxruntime_gpu as gpu

            facts = gpu.tried_on_gpu(target / FILE, threads, options, example)
        else:
            executed, provider = profiled(target / FILE, threads, options, example=example)
            facts = {"executed": executed, "provider": provider}
    return {"format": "onnx", **facts}


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """Return `run(inputs) -> float32 logits [batch, classes]` for requests of any size."""
    if device == "cuda":
        # imports PyTorch, for its buffers and streams; an engine on the CPU needs neither
        from tightrope.engines import onnxruntime_gpu as gpu

        by = gpu.load_by_tensorrt if options.get("provider") == TENSORRT else gpu.load_on_gpu
        return by(path / FILE, precision, threads, options)
    session = open_session(path / FILE, session_options(threads, options))

    def run(inputs: Arrays) -> Any:
        return session.run(None, inputs)[0]

    return run


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


def session_options(threads: int, options: Options) -> onnxruntime.SessionOptions:
    """Return options: `threads` intra-op threads that sleep between calls, rest as configured."""
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = threads
    chosen.inter_op_num_threads = 1
    chosen.log_severity_level = 3
    level = f"ORT_ENABLE_{options['optimization'].upper()}"
    chosen.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    chosen.enable_cpu_mem_arena = chosen.enable_mem_pattern = options["arena"]
    # spinning threads of an idle engine would slow down the engine that is timed
    chosen.add_session_config_entry("session.force_spinning_stop", "1")
    chosen.add_session_config_entry(
        "session.intra_op.allow_spinning", str(int(options["spinning"]))
    )
    return chosen


def open_session(
    path: Path, options: onnxruntime.SessionOptions, providers: Providers = ((CPU, {}),)
) -> onnxruntime.InferenceSession:
    """Open a session on these providers.

    Raises ArtifactError for a file that is not valid ONNX, WorkFailed where a provider is missing,
    because ONNX Runtime would fall back to the next one.
    """
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=list(providers))
    except onnxruntime.capi.onnxruntime_pybind11_state.InvalidProtobuf as error:
        raise ArtifactError(f"{path}: no readable ONNX file; delete it and run again") from error
    missing = [name for name, _ in providers if name not in session.get_providers()]
    if missing:
        raise WorkFailed(
            f"fell back to {session.get_providers()[0]}: {missing[0]} could not be loaded (the log "
            "of this job says why)",
            transient=False,
        )
    return session


def profiled(
    path: Path,
    threads: int,
    options: Options,
    providers: Providers = ((CPU, {}),),
    *,
    example: Arrays,
) -> tuple[Executed, dict[str, int]]:
    """Count the operators that a run of `example` executes, by class and type, and per provider.

    Operators are counted after optimization. Raises WorkFailed where one ran on another provider
    than the first, except integer arithmetic such as that of shapes, which belongs on the CPU.
    """
    events = kernel_events(path, session_options(threads, options), providers, [example])
    nodes = [one["args"] for one in events]
    counts = counted((node["provider"], "operators") for node in nodes)
    kinds = [(node, operand_type(node)) for node in nodes]
    asked = providers[0][0]
    elsewhere = {node["provider"] for node, kind in kinds if kind and node["provider"] != asked}
    if elsewhere:
        raise WorkFailed(f"fell back to {', '.join(sorted(elsewhere))}", transient=False)
    executed = counted((node["op_name"], kind) for node, kind in kinds if kind is not None)
    return executed, {name: count["operators"] for name, count in counts.items()}


def kernel_events(
    path: Path, options: onnxruntime.SessionOptions, providers: Providers, calls: Iterable[Arrays]
) -> list[dict[str, Any]]:
    """Return the events of ONNX Runtime's profiler for these calls: one per operator and call."""
    with tempfile.TemporaryDirectory() as folder:
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder, "profile"))
        session = open_session(path, options, providers)
        for inputs in calls:
            session.run(None, inputs)
        events = json.loads(Path(session.end_profiling()).read_text())
    return [one for one in events if one["name"].endswith(KERNEL)]


def operand_type(node: dict[str, Any]) -> str | None:
    """Return int8 if any operand is, else the type of the first, None for integer arithmetic.

    ONNX Runtime's operator for int8 with dynamic ranges is DynamicQuantizeMatMul; its first operand
    is still fp32.
    """
    names = [next(iter(operand)) for operand in node["input_type_shape"]]
    kinds = [FLOATS[name] for name in names if name in FLOATS]
    return "int8" if "int8" in kinds else next(iter(kinds), None)


def operator_times(
    path: Path, run: Any, calls: Calls, *, precision: str, threads: int, options: Options
) -> list[list[OperatorTime]]:
    """Return the time of each operator per call on the CPU, for each of `calls`."""
    found = events_of(path / FILE, session_options(threads, options), calls)
    return [
        per_call(times_of(events), count) for events, (_, count) in zip(found, calls, strict=True)
    ]


def events_of(
    path: Path, options: onnxruntime.SessionOptions, calls: Calls
) -> list[list[dict[str, Any]]]:
    """Return the events of ONNX Runtime's profiler for each of `calls`: one per operator and call.

    The session is opened once, with its profiler. One more call before those of `calls`, with the
    same inputs, warms up.
    """
    every = (inputs for inputs, count in calls for _ in range(count + 1))
    kernels = kernel_events(path, options, ((CPU, {}),), every)
    size = len(kernels) // sum(count + 1 for _, count in calls)
    ends = accumulate(size * (count + 1) for _, count in calls)
    return [kernels[end - size * count : end] for end, (_, count) in zip(ends, calls, strict=True)]


def times_of(events: Iterable[dict[str, Any]]) -> Iterator[OperatorTime]:
    """Return the time of each event of calls of the same inputs.

    Their operators are read once: that takes longer than many an operator.
    """
    known: dict[str, OperatorTime] = {}
    for event in events:
        name, facts = event["name"], event["args"]
        if name not in known:
            ends = (tensors(facts[f"{end}_type_shape"]) for end in ("input", "output"))
            known[name] = operator_time(name.removesuffix(KERNEL), facts["op_name"], 0.0, *ends)
        yield replace(known[name], seconds=MICRO * event["dur"])


def tensors(operands: list[dict[str, list[int]]]) -> list[Tensor]:
    """Return types and shapes of the operands of an event."""
    return [
        Tensor(tuple(shape), TYPES.get(kind, kind))
        for operand in operands
        for kind, shape in operand.items()
    ]
