"""TensorRT 11: a plan built from typed ONNX with Polygraphy's loaders, run on PyTorch buffers."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorrt as trt
import torch
from polygraphy.backend.trt import CreateConfig, EngineBytesFromNetwork, NetworkFromOnnxPath
from polygraphy.backend.trt import Profile as Ranges

from tightrope.artifacts.files import digest
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.engine_table import RANGES, Engine
from tightrope.engines.tensorrt_errors import require_same, require_version, with_reasons
from tightrope.engines.tensorrt_inspection import timed_layers, weakest
from tightrope.engines.tensorrt_onnx import model_to_build
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays, example_of
from tightrope.machine.nvml import nvidia_gpu
from tightrope.onnx.file import load_onnx, save_onnx, signature_of
from tightrope.records.profile import OperatorTime
from tightrope.runtimes.cuda_program import (
    CudaProgram,
    Program,
    Queue,
    graphs_of,
    queue_on_gpu,
    scratch_of,
    with_graphs,
)
from tightrope.runtimes.operator_times import Calls, per_call
from tightrope.runtimes.program_by_shape import ByShape, Make
from tightrope.runtimes.shapes import Profile, Shape, choose
from tightrope.runtimes.torch_device import prepare
from tightrope.signature import Signature, signature, sizes_of

SPEC = Engine(
    precisions={"cuda": ("fp32", "tf32", "bf16", "fp16", "int8-fp16", "fp8")},
    libraries=("tensorrt-cu13", "polygraphy", "torch"),
    source="onnx",
    about="TensorRT 11, from typed or Q/DQ ONNX",
    colour=("#06a25b", "#36af71"),
    methods=RANGES,
    schemes={"cuda": "s8s8"},
    cuda=("graphs",),
    given=("cuda",),
    mem_mb=16000,
    minutes=120,
)
PLAN, LAYERS = "model.plan", "layers.json"
Options = dict[str, Any]


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
    """Write TensorRT's plan and its layers into folder `target`.

    `source` is an ONNX file, with Q/DQ for int8, fp8 and given. The folder `state` keeps the file
    that is built, and the timing cache for later builds. `executed` is that of the optimization
    profile with the smallest share of products in the precision, of those whose types are known.
    Raises WorkFailed with TensorRT's own reason, and where a profile has only products in others.
    """
    require_version(trt.__version__)
    prepare(device, precision, threads)
    attention = options["attention_operator"]
    model = model_to_build(load_onnx(source), precision, attention_operator=attention)
    input_signature = signature_of(model)
    state.mkdir(parents=True, exist_ok=True)
    save_onnx(model, state / f"{target.name}.onnx")
    plan = built(state / f"{target.name}.onnx", input_signature, precision, options, state)
    (target / PLAN).write_bytes(plan)
    engine, first = deserialized(plan, options), Profile.of(options["profiles"][0]).opt
    information = layer_information(engine, input_signature.request(*first))
    (target / LAYERS).write_text(information)
    load = partial(runner, engine, input_signature, options)
    return {
        "format": "tensorrt-plan",
        "executed": weakest(information, precision, len(options["profiles"])),
        "built_on": place(),
        **graphs_of(options, load, example_of(input_signature, *first)),
    }


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """Return `run(inputs) -> float32 logits [batch, classes]` for shapes within the profiles.

    Raises WorkFailed for a plan of another TensorRT or GPU.
    """
    require_version(trt.__version__)
    prepare(device, precision, threads)
    manifest = open_manifest(path / "engine.json", EngineManifest)
    require_same(manifest["built_on"], place(), options)
    input_signature = signature(manifest["inputs"])
    engine = deserialized((path / PLAN).read_bytes(), options)
    return runner(engine, input_signature, with_graphs(options, path))


def runner(engine: trt.ICudaEngine, input_signature: Signature, options: Options) -> ByShape:
    """Return `run` with a program per shape, with `graphs` in the options a CUDA graph each."""
    profiles = [Profile.of(one) for one in options["profiles"]]

    def on_new_queue() -> Make:
        queue = queue_on_gpu(graphs=options["graphs"])

        def make(inputs: Arrays) -> CudaProgram:
            with torch.cuda.stream(queue.stream):
                call = program(engine, input_signature, profiles, queue, inputs)
            return CudaProgram(call, inputs, queue)

        return make

    return ByShape(on_new_queue, buckets=None)


class LayerTimes(trt.IProfiler):  # type: ignore[misc]  # tensorrt has no types
    """Name and seconds of each layer of each call, as TensorRT reports them."""

    def __init__(self) -> None:
        trt.IProfiler.__init__(self)
        self.seen: list[tuple[str, float]] = []

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Keep the time of one layer."""
        self.seen.append((layer_name, ms / 1e3))


def layer_times(path: Path, calls: Calls) -> list[list[OperatorTime]]:
    """Return the time of each layer per call of the engine in folder `path`. Not run yet.

    Its calls are without a CUDA graph, in a context of their own for each of `calls`.
    """
    manifest = open_manifest(path / "engine.json", EngineManifest)
    options, input_signature = manifest["options"], signature(manifest["inputs"])
    engine = deserialized((path / PLAN).read_bytes(), options)
    profiles, found = [Profile.of(one) for one in options["profiles"]], []
    for inputs, count in calls:
        queue, times, request = queue_on_gpu(graphs=False), LayerTimes(), sizes_of(inputs)
        with torch.cuda.stream(queue.stream):
            call = program(engine, input_signature, profiles, queue, inputs, times)
            timed = CudaProgram(call, inputs, queue)
            times.seen.clear()
            for _ in range(count):
                timed(inputs)
            shapes, number = input_signature.request(*request), choose(profiles, *request)
            information = layer_information(engine, shapes, number)
        found.append(per_call(timed_layers(information, times.seen), count))
    return found


def built(
    model: Path, input_signature: Signature, precision: str, options: Options, state: Path
) -> bytes:
    """Build the plan of an ONNX file; the timing cache is read from and kept in folder `state`."""
    cache = state / f"timing-{digest({**place(), 'driver': nvidia_gpu().driver})}.cache"
    level = options["hardware_compatibility"].upper()
    config = CreateConfig(
        profiles=[ranges(input_signature, Profile.of(one)) for one in options["profiles"]],
        tf32=precision == "tf32",
        load_timing_cache=str(cache) if cache.is_file() else None,
        profiling_verbosity=trt.ProfilingVerbosity.DETAILED,
        builder_optimization_level=options["optimization_level"],
        hardware_compatibility_level=getattr(trt.HardwareCompatibilityLevel, level),
        version_compatible=options["version_compatible"],
    )
    network = NetworkFromOnnxPath(str(model))
    with with_reasons():
        return bytes(EngineBytesFromNetwork(network, config, save_timing_cache=str(cache))())


def ranges(input_signature: Signature, profile: Profile) -> Ranges:
    """Convert the profile to Polygraphy's type."""
    least, best, most = (input_signature.request(*shape) for shape in profile)
    found = Ranges()
    for name in best:
        found.add(name, min=least[name], opt=best[name], max=most[name])
    return found


def deserialized(plan: bytes, options: Options) -> trt.ICudaEngine:
    """Return the engine of a plan; raise WorkFailed where this TensorRT cannot load it."""
    runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
    # a version-compatible plan contains host code of its TensorRT; it is a trusted local build
    runtime.engine_host_code_allowed = options["version_compatible"]
    engine = runtime.deserialize_cuda_engine(plan)
    if engine is None:
        raise WorkFailed(
            f"TensorRT {trt.__version__} cannot load the plan on {place()['gpu']} (the log of this "
            "job says why): delete the engine's folder and run again",
            transient=False,
        )
    return engine


def program(
    engine: trt.ICudaEngine,
    input_signature: Signature,
    profiles: list[Profile],
    queue: Queue,
    inputs: Arrays,
    times: LayerTimes | None = None,
) -> Program:
    """Return the engine as a program for inputs of this shape; ValueError outside the profiles.

    One context per program: a CUDA graph holds the state of the context it was captured from. The
    contexts of one queue run one after the other in its scratch memory. `times` gets the time of
    each layer after each call.
    """
    strategy = trt.ExecutionContextAllocationStrategy.USER_MANAGED
    context = there(engine.create_execution_context(strategy))
    request = sizes_of(inputs)
    set_shapes(context, choose(profiles, *request), input_signature.request(*request))
    # what these shapes need, not the most of any profile
    scratch = scratch_of(queue, context.update_device_memory_size_for_shapes())
    context.set_device_memory(scratch.data_ptr(), scratch.nbytes)
    names = map(engine.get_tensor_name, range(engine.num_io_tensors))
    output = next(n for n in names if engine.get_tensor_mode(n) == trt.TensorIOMode.OUTPUT)
    logits = torch.empty(tuple(context.get_tensor_shape(output)), device="cuda")
    succeeded(context.set_tensor_address(output, logits.data_ptr()), "the buffer of logits")
    if times is not None:
        context.profiler, context.enqueue_emits_profile = times, False

    def call(_held: torch.Tensor = scratch, **tensors: torch.Tensor) -> torch.Tensor:
        for name, tensor in tensors.items():
            succeeded(context.set_tensor_address(name, tensor.data_ptr()), f"the buffer of {name}")
        succeeded(context.execute_async_v3(torch.cuda.current_stream().cuda_stream), "a call")
        if times is not None:
            succeeded(context.report_to_profiler(), "the times of its layers")
        return logits

    return call


def place() -> dict[str, str]:
    """Return the TensorRT version and the GPU that a plan is valid for."""
    return {"tensorrt": trt.__version__, "gpu": torch.cuda.get_device_name()}


def there(context: trt.IExecutionContext | None) -> trt.IExecutionContext:
    """Return the context; raise a transient WorkFailed where TensorRT could not create it."""
    if context is None:
        raise WorkFailed("TensorRT could not make a context: GPU out of memory", transient=True)
    return context


def set_shapes(context: trt.IExecutionContext, profile: int, shapes: dict[str, Shape]) -> None:
    """Select the profile and set the shape of each input."""
    stream = torch.cuda.current_stream()
    succeeded(context.set_optimization_profile_async(profile, stream.cuda_stream), "a profile")
    stream.synchronize()
    for name, shape in shapes.items():
        succeeded(context.set_input_shape(name, shape), f"the shape {shape} of {name}")


def succeeded(answer: bool, what: str) -> None:
    """Raise RuntimeError where TensorRT, which raises nothing itself, returned False."""
    if not answer:
        raise RuntimeError(f"TensorRT refused {what} (the log of this job says why)")


def layer_information(engine: trt.ICudaEngine, shapes: dict[str, Shape], number: int = 0) -> str:
    """Return the inspector's layer information as JSON, at these shapes in a profile.

    It lists the layers of all profiles (TensorRT 10.16), or of this one (polygraphy's reader).
    """
    inspector = engine.create_engine_inspector()
    # the inspector reports types only for a context with shapes
    context = there(engine.create_execution_context())
    inspector.execution_context = context
    set_shapes(context, number, shapes)
    # they are read where the shapes of other tensors follow from them
    kept = {name: np.array(sizes, np.int64) for name, sizes in tuned_sizes(engine, number).items()}
    for name, sizes in kept.items():
        succeeded(context.set_tensor_address(name, sizes.ctypes.data), f"the sizes of {name}")
    return inspector.get_engine_information(trt.LayerInformationFormat.JSON)


def tuned_sizes(engine: trt.ICudaEngine, number: int) -> dict[str, Shape]:
    """Return a profile's tuned values of each input that holds sizes."""
    names = map(engine.get_tensor_name, range(engine.num_io_tensors))
    return {
        name: tuple(engine.get_tensor_profile_values(number, name)[1])
        for name in names
        if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
        and engine.is_shape_inference_io(name)
    }
