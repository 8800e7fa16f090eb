"""Sessions of ONNX Runtime: how they are opened, and what runs in them on which provider."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnxruntime

from tightrope.errors import ArtifactError, WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.runtimes.executed import Executed, counted

CPU = "CPUExecutionProvider"
LEVELS = {
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
}
TYPES = {"float": "fp32", "float16": "fp16", "bfloat16": "bf16", "int8": "int8", "uint8": "int8"}
# names and options, the first before the others
Providers = Sequence[tuple[str, dict[str, str]]]
Options = dict[str, Any]


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


def open_session(
    path: Path, options: onnxruntime.SessionOptions, providers: Providers = ((CPU, {}),)
) -> onnxruntime.InferenceSession:
    """A session on these providers.

    Raises ArtifactError for a file that is no ONNX, WorkFailed where a provider is missing: ONNX
    Runtime would go on with the next.
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
    """What a call with `example` runs after optimization, by class and type; how many on what.

    Raises WorkFailed where anything but counting in integers, which belongs on the CPU, ran on
    another provider than the first.
    """
    with tempfile.TemporaryDirectory() as folder:
        chosen = session_options(threads, options)
        chosen.enable_profiling = True
        chosen.profile_file_prefix = str(Path(folder, "profile"))
        session = open_session(path, chosen, providers)
        session.run(None, example)
        events = json.loads(Path(session.end_profiling()).read_text())
    nodes = [one["args"] for one in events if one["name"].endswith("_kernel_time")]
    counts = counted((node["provider"], "operators") for node in nodes)
    kinds = [(node, operand_type(node)) for node in nodes]
    asked = providers[0][0]
    elsewhere = {node["provider"] for node, kind in kinds if kind and node["provider"] != asked}
    if elsewhere:
        raise WorkFailed(f"fell back to {', '.join(sorted(elsewhere))}", transient=False)
    executed = counted((node["op_name"], kind) for node, kind in kinds if kind is not None)
    return executed, {name: count["operators"] for name, count in counts.items()}


def operand_type(node: dict[str, Any]) -> str | None:
    """int8 where an operand is, else the type of the first one; None for counting in integers.

    A runtime's name for int8 by the range of each call is DynamicQuantizeMatMul, of which the
    first operand is still in fp32.
    """
    names = [next(iter(operand)) for operand in node["input_type_shape"]]
    kinds = [TYPES[name] for name in names if name in TYPES]
    return "int8" if "int8" in kinds else next(iter(kinds), None)
