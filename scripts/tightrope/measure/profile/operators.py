"""The time of each operator of an engine, by the profiler of its runtime.

Apart from the engines, so that a change here builds none of them again.
"""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.engines.load import Run
from tightrope.errors import WorkFailed
from tightrope.runtimes.buckets import Buckets, in_words
from tightrope.runtimes.operator_times import Calls, OperatorTime
from tightrope.runtimes.program_by_shape import padded
from tightrope.signature import sizes_of
from tightrope.variants import Variant, parse

# engine.json, the function that calls the loaded engine, calls, threads
Profiler = Callable[[Path, Run, Calls, int], list[list[OperatorTime]]]


def operator_times(
    engine: Path, run: Run, calls: Calls, *, threads: int
) -> list[list[OperatorTime]]:
    """Return the time of each operator per call of an engine, for each of `calls`.

    `engine` is its engine.json and `run` calls it: it was called with the same inputs before. A
    runtime that times operators only from the start loads the engine once more, for all `calls`.
    Raises WorkFailed where the engine's runtime has no profiler here.
    """
    variant = parse(open_manifest(engine, EngineManifest)["variant"])
    profiler = PROFILERS.get(variant.engine) if variant.device == "cpu" else None
    if profiler is None:
        raise WorkFailed(why_none(variant), transient=False)
    return profiler(engine, run, calls, threads)


def why_none(variant: Variant) -> str:
    """Return why the operators of a variant are not timed."""
    if variant.device != "cpu":
        return "operators are not timed on a GPU yet"
    return f"operators of {variant.engine} are not timed yet"


def of_torch(engine: Path, run: Run, calls: Calls, threads: int) -> list[list[OperatorTime]]:
    """Return the operators that PyTorch's profiler lists."""
    from tightrope.runtimes.torch.operator_times import operator_times as by_profiler

    return [by_profiler(partial(run, inputs), count) for inputs, count in calls]


def of_package(engine: Path, run: Run, calls: Calls, threads: int) -> list[list[OperatorTime]]:
    """Return the oneDNN primitives of a compiled package."""
    from tightrope.runtimes.torch.onednn_times import operator_times as by_log

    return [by_log(partial(run, inputs), count) for inputs, count in calls]


def of_onnxruntime(engine: Path, run: Run, calls: Calls, threads: int) -> list[list[OperatorTime]]:
    """Return the kernels that ONNX Runtime's profiler lists, of a session with it."""
    from tightrope.engines.onnxruntime import FILE
    from tightrope.runtimes.onnxruntime.operator_times import operator_times as by_profiler

    options = open_manifest(engine, EngineManifest)["options"]
    return by_profiler(engine.parent / FILE, threads, options, calls)


def of_openvino(engine: Path, run: Run, calls: Calls, threads: int) -> list[list[OperatorTime]]:
    """Return the operators that OpenVINO's performance counters list, in the program of a call."""
    from tightrope.runtimes.openvino import COUNTERS, Programs
    from tightrope.runtimes.openvino import operator_times as by_counters

    manifest = open_manifest(engine, EngineManifest)
    precision, options = parse(manifest["variant"]).precision, manifest["options"]
    buckets, most = options["buckets"], options["static_programs"]
    programs = Programs(engine.parent, precision, threads, buckets, most=most)
    programs.settings |= COUNTERS
    program = cache(programs.program)
    found = []
    for inputs, count in calls:
        name = programs.serving(*sizes_of(inputs))
        whole = inputs if name is None else padded(inputs, name)
        found.append(by_counters(program(name), whole, count))
    return found


def of_tvm(engine: Path, run: Run, calls: Calls, threads: int) -> list[list[OperatorTime]]:
    """Return the kernels that TVM's virtual machine calls, in the bucket of a call."""
    from safetensors.numpy import load_file

    from tightrope.engines.tvm import WEIGHTS, set_threads
    from tightrope.runtimes.tvm.operator_times import operator_times as by_instrument

    set_threads(threads)
    manifest = open_manifest(engine, EngineManifest)
    buckets = Buckets(manifest["options"]["buckets"])
    weights = [array for _, array in sorted(load_file(engine.parent / WEIGHTS).items())]
    found = []
    for inputs, count in calls:
        bucket = buckets.nearest(*sizes_of(inputs))
        whole = padded(inputs, bucket)
        given = [whole[name] for name, *_ in manifest["inputs"]]
        library = engine.parent / f"{in_words(bucket)}.so"
        found.append(by_instrument(library, [*given, *weights], count))
    return found


PROFILERS: dict[str, Profiler] = {
    "pytorch": of_torch,
    "torchscript": of_torch,
    "compile": of_torch,
    "inductor": of_package,
    "onnxruntime": of_onnxruntime,
    "openvino": of_openvino,
    "tvm": of_tvm,
}
