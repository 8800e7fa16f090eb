"""ONNX Runtime on an NVIDIA GPU, with inputs and outputs bound to PyTorch's buffers.

The engine of its TensorRT provider is beside the ONNX file, the timing cache in work/. That one is
without CUDA graphs: a session holds a single graph for all shapes.
"""

import ctypes
import itertools
import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.capi import build_and_package_info

from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.engines.onnxruntime import (
    Options,
    Providers,
    open_session,
    profiled,
    session_options,
)
from tightrope.engines.tensorrt_onnx import typed
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays, example_of
from tightrope.machine.lacks import require_gpu
from tightrope.onnx.file import save_onnx, signature_of
from tightrope.runtimes.cuda_program import CudaProgram, graphs_of, queue_on_gpu, with_graphs
from tightrope.runtimes.executed import counted, is_product
from tightrope.runtimes.program_by_shape import ByShape, Make
from tightrope.runtimes.shapes import Buckets, Profile, covering, in_words
from tightrope.signature import BATCH, SEQUENCE, Signature, signature

CUDA = "CUDAExecutionProvider"
# graph id of a run without graph capture
NO_GRAPH = "-1"
TENSORRT = "TensorrtExecutionProvider"
LIBRARY = Path(onnxruntime.__file__).parent / "capi/libonnxruntime_providers_tensorrt.so"
NVINFER = re.compile(rb"libnvinfer\.so\.\d+")
ENGINES = "*.engine"
NO_GRAPHS = {"graphs": False}


def prepare() -> None:
    """Load the CUDA libraries that pip installed, and disable TF32 in this process.

    Raises WorkFailed where there is no GPU, or none that this ONNX Runtime can use.
    """
    cuda = getattr(build_and_package_info, "cuda_version", None)
    require_gpu(f"ONNX Runtime {onnxruntime.__version__}", cuda)
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    onnxruntime.preload_dlls()


def cuda_provider(options: Options) -> tuple[str, dict[str, str]]:
    """Return the CUDA provider, with a CUDA graph per shape if the options have `graphs`."""
    graphs = str(bool(options["graphs"]))
    return CUDA, {"device_id": "0", "use_tf32": "0", "enable_cuda_graph": graphs}


def tried_on_gpu(path: Path, threads: int, options: Options, example: Arrays) -> dict[str, Any]:
    """Return `executed`, `provider` and `graphs_refused`.

    Operators are counted without CUDA graphs, whose replay names none.
    """
    prepare()
    plain = cuda_provider({**options, "graphs": False})
    executed, provider = profiled(path, threads, options, [plain], example=example)
    load = partial(run_on_gpu, path, threads, options)
    return {"executed": executed, "provider": provider, **graphs_of(options, load, example)}


def load_on_gpu(path: Path, precision: str, threads: int, options: Options) -> Any:
    """Return `run` of the CUDA provider for the ONNX file `path`, see `bound_runner`."""
    prepare()
    return run_on_gpu(path, threads, with_graphs(options, path.parent))


def run_on_gpu(path: Path, threads: int, options: Options) -> Any:
    """Return `run` of the CUDA provider, with CUDA graphs if the options have `graphs`."""
    chosen = session_options(threads, options)
    return bound_runner(path, chosen, [cuda_provider(options)], options)


def bound_runner(
    path: Path, chosen: onnxruntime.SessionOptions, providers: Providers, options: Options
) -> Callable[[Arrays], np.ndarray]:
    """Return `run(inputs) -> float32 logits [batch, classes]`; with graphs it pads to buckets.

    Buffers, copies and clock are those of the engines of PyTorch and TensorRT. A session computes
    on one stream, so each further stream opens the file at `path` again.
    """
    graphs = options["graphs"]
    buckets = Buckets(options["buckets"]) if graphs and options.get("buckets") else None

    def on_new_queue() -> Make:
        queue, numbers = queue_on_gpu(graphs=False), itertools.count(1)
        # on which PyTorch fills and reads the buffers
        stream = {"user_compute_stream": str(queue.stream.cuda_stream)} if queue.stream else {}
        own = [(name, {**settings, **stream}) for name, settings in providers]
        session = open_session(path, chosen, own)

        def make(inputs: Arrays) -> CudaProgram:
            graph = str(next(numbers)) if graphs else NO_GRAPH
            return CudaProgram(BoundProgram(session, graph), inputs, queue)

        return make

    return ByShape(on_new_queue, buckets)


class BoundProgram:
    """Session at one shape on PyTorch's buffers; `graph` is the id of its CUDA graph.

    All calls get the same tensors, which are bound at the first one.
    """

    def __init__(self, session: onnxruntime.InferenceSession, graph: str) -> None:
        self.session = session
        self.graph = graph
        self.binding: Any = None
        self.options = onnxruntime.RunOptions()
        self.options.add_run_config_entry("gpu_graph_id", graph)
        # whoever reads the logits waits for the stream
        self.options.add_run_config_entry("disable_synchronize_execution_providers", "1")

    def __call__(self, **tensors: torch.Tensor) -> torch.Tensor:
        """Queue the computation; return the buffer of the logits, float32 [batch, classes]."""
        if self.binding is None:
            self.bind(tensors)
        self.session.run_with_iobinding(self.binding, self.options)
        return self.logits

    def bind(self, tensors: dict[str, torch.Tensor]) -> None:
        """Bind the tensors, and a buffer for the logits on their device."""
        output, first = self.session.get_outputs()[0], next(iter(tensors.values()))
        self.logits = torch.empty((len(first), output.shape[1]), device=first.device)
        self.binding = self.session.io_binding()
        for name, tensor in tensors.items():
            self.binding.bind_input(name, *place_of(tensor))
        self.binding.bind_output(output.name, *place_of(self.logits))

    def release(self) -> None:
        """Free the CUDA graph."""
        if self.graph != NO_GRAPH:
            self.session.release_captured_graph(int(self.graph))


def place_of(tensor: torch.Tensor) -> tuple[str, int, type, list[int], int]:
    """Return device, its number, dtype, shape and address, as ONNX Runtime binds a buffer."""
    dtype = np.dtype(str(tensor.dtype).removeprefix("torch.")).type
    return (
        tensor.device.type,
        tensor.device.index or 0,
        dtype,
        list(tensor.shape),
        tensor.data_ptr(),
    )


def build_by_tensorrt(
    model: onnx.ModelProto, path: Path, precision: str, threads: int, options: Options, state: Path
) -> dict[str, Any]:
    """Write the typed ONNX file `path`, and beside it the engine that TensorRT builds of it.

    ONNX Runtime does not show the layers of that engine: `executed` is what the file asks for,
    `provider` the number of operators per provider. Raises WorkFailed where a floating-point
    operator falls back to another provider.
    """
    prepare()
    load_tensorrt()
    model = typed(model, precision)
    save_onnx(model, path)
    state.mkdir(parents=True, exist_ok=True)
    input_signature = signature_of(model)
    providers = providers_of(path.parent, input_signature, precision, options, state)
    best = dict(zip(input_signature.free, profile_of(options).opt, strict=True))
    example = example_of(input_signature, best[BATCH], best.get(SEQUENCE, 0))
    _, provider = profiled(path, threads, options, providers, example=example)
    if not list(path.parent.glob(ENGINES)):
        raise WorkFailed(f"{TENSORRT} has kept no engine (the log says why)", transient=False)
    kinds = [node.op_type for node in model.graph.node if is_product(node.op_type)]
    return {"executed": counted((kind, precision) for kind in kinds), "provider": provider}


def load_by_tensorrt(path: Path, precision: str, threads: int, options: Options) -> Any:
    """Return `run(inputs) -> float32 logits [batch, classes]` within the optimization profile.

    `path` is the ONNX file. Raises WorkFailed where TensorRT would build another engine.
    """
    prepare()
    load_tensorrt()
    folder = path.parent
    input_signature = signature(open_manifest(folder / "engine.json", EngineManifest)["inputs"])
    providers = providers_of(folder, input_signature, precision, options)
    before = set(folder.glob(ENGINES))
    run = bound_runner(path, session_options(threads, options), providers, NO_GRAPHS)
    if set(folder.glob(ENGINES)) - before:
        raise WorkFailed(
            "the engine was built by another TensorRT or for another GPU, and would be built anew: "
            "delete the engine's folder and run again",
            transient=False,
        )
    return run


def providers_of(
    folder: Path,
    input_signature: Signature,
    precision: str,
    options: Options,
    state: Path | None = None,
) -> Providers:
    """Return TensorRT with its engine in `folder`, and CUDA for integer shape arithmetic.

    A single optimization profile, which covers all `profiles` of the options. A build has its
    timing cache in `state`.
    """
    ranges = {
        f"trt_profile_{key}_shapes": ",".join(
            f"{name}:{in_words(whole)}" for name, whole in input_signature.request(*shape).items()
        )
        for key, shape in profile_of(options)._asdict().items()
    }
    timing = {"trt_timing_cache_enable": "True", "trt_timing_cache_path": str(state)}
    settings = {
        "device_id": "0",
        "trt_engine_cache_enable": "True",
        "trt_engine_cache_path": str(folder),
        # before version 11 TensorRT uses the fp16 types of the file only with this flag
        "trt_fp16_enable": str(precision == "fp16"),
        **(timing if state else {}),
        **ranges,
    }
    return [(TENSORRT, settings), cuda_provider(NO_GRAPHS)]


def profile_of(options: Options) -> Profile:
    """Return the single optimization profile of the engine."""
    return covering([Profile.of(one) for one in options["profiles"]])


def load_tensorrt(library: Path = LIBRARY) -> None:
    """Load the TensorRT that the provider's library is linked to, from its package or the path.

    That is one major version, not always the installed one. Raises WorkFailed where it is missing.
    """
    linked = set(NVINFER.findall(library.read_bytes())) if library.is_file() else set()
    found = find_spec("tensorrt_libs")
    folders = (found.submodule_search_locations or ()) if found else ()
    for name in sorted(word.decode() for word in linked):
        if not any(loads(path) for path in (name, *(str(Path(one, name)) for one in folders))):
            raise WorkFailed(
                f"onnxruntime is linked to {name}, which cannot be loaded: put the libraries of "
                f"TensorRT {name.rpartition('.')[2]} on LD_LIBRARY_PATH",
                transient=False,
            )


def loads(library: str) -> bool:
    """Load a shared library for all that are loaded later; return success."""
    with suppress(OSError):
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        return True
    return False
