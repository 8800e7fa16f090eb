"""Open sessions of ONNX Runtime, and profile their operators per provider."""

import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import onnxruntime

from tightrope.errors import ArtifactError, WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.runtimes.executed import Executed, counted

CPU, KERNEL = "CPUExecutionProvider", "_kernel_time"
LEVELS = {
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
}
TYPES = {"float": "fp32", "float16": "fp16", "bfloat16": "bf16", "int8": "int8", "uint8": "int8"}
# names and options, in order of preference
Providers = Sequence[tuple[str, dict[str, str]]]
Options = dict[str, Any]


def session_options(threads: int, options: Options) -> onnxruntime.SessionOptions:
    """Return options: `threads` intra-op threads that sleep between calls, rest as configured."""
    chosen = onnxruntime.SessionOptions()
    chosen.intra_op_num_threads = threads
    chosen.inter_op_num_threads = 1
    chosen.log_severity_level = 3
    chosen.graph_optimization_level = LEVELS[options["optimization"]]
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
    kinds = [TYPES[name] for name in names if name in TYPES]
    return "int8" if "int8" in kinds else next(iter(kinds), None)
