"""ONNX Runtime on an NVIDIA GPU, with inputs and outputs bound to GPU buffers."""

import itertools
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime.capi import build_and_package_info

from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.machine.gpu import linked_tensorrt, loaded, require_gpu, without_tensorrt
from tightrope.runtimes.buckets import Buckets
from tightrope.runtimes.onnxruntime.session import Options, Providers
from tightrope.runtimes.program_by_shape import ByShape

CUDA = "CUDAExecutionProvider"
# graph id of a run without graph capture
NO_GRAPH = "-1"


def prepare() -> None:
    """Load the CUDA libraries that pip installed, and disable TF32 in this process.

    Raises WorkFailed where there is no GPU, or none that this ONNX Runtime can use.
    """
    cuda = getattr(build_and_package_info, "cuda_version", None)
    require_gpu(f"ONNX Runtime {onnxruntime.__version__}", cuda)
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    onnxruntime.preload_dlls()


def load_tensorrt() -> None:
    """Load the TensorRT linked by this ONNX Runtime; raise WorkFailed where it is missing."""
    for library in linked_tensorrt():
        if not loaded(library):
            raise WorkFailed(without_tensorrt(library), transient=False)


def cuda_provider(options: Options) -> tuple[str, dict[str, str]]:
    """Return the CUDA provider, with a CUDA graph per shape if the options have `graphs`."""
    graphs = str(bool(options["graphs"]))
    return CUDA, {"device_id": "0", "use_tf32": "0", "enable_cuda_graph": graphs}


def without_graphs(providers: Providers) -> Providers:
    """Return the providers without CUDA graphs, to profile: replayed graphs name no operators."""
    return [
        (name, {**settings, "enable_cuda_graph": "False"} if name == CUDA else settings)
        for name, settings in providers
    ]


def bound_runner(
    session: onnxruntime.InferenceSession, options: Options
) -> Callable[[Arrays], np.ndarray]:
    """Return `run(inputs) -> float32 logits [batch, classes]`; with graphs it pads to buckets."""
    numbers = itertools.count(1)
    graphs = options["graphs"]
    buckets = Buckets(options["buckets"]) if graphs and options.get("buckets") else None

    def make(inputs: Arrays) -> BoundProgram:
        return BoundProgram(session, inputs, str(next(numbers)) if graphs else NO_GRAPH)

    return ByShape(make, buckets)


class BoundProgram:
    """Session at one shape with buffers bound once; `graph` is the id of its CUDA graph."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        inputs: Arrays,
        graph: str,
        device: str = "cuda",
    ) -> None:
        value = onnxruntime.OrtValue
        output = session.get_outputs()[0]
        rows = len(next(iter(inputs.values())))
        self.session = session
        self.inputs = {
            name: value.ortvalue_from_numpy(array, device, 0) for name, array in inputs.items()
        }
        self.logits = value.ortvalue_from_shape_and_type(
            [rows, output.shape[1]], np.float32, device, 0
        )
        self.binding = session.io_binding()
        for name, one in self.inputs.items():
            self.binding.bind_ortvalue_input(name, one)
        self.binding.bind_ortvalue_output(output.name, self.logits)
        self.options = onnxruntime.RunOptions()
        self.options.add_run_config_entry("gpu_graph_id", graph)

    def launch(self) -> None:
        """Compute from the buffers, and return when done."""
        self.session.run_with_iobinding(self.binding, self.options)

    def __call__(self, inputs: Arrays) -> np.ndarray:
        """Return the logits of inputs of this shape, copied to the host."""
        for name, array in inputs.items():
            self.inputs[name].update_inplace(array)
        self.launch()
        return np.array(self.logits.numpy())

    def device_seconds(self, inputs: Arrays, calls: int) -> list[float]:
        """Return the seconds of each of `calls` calls without transfers, by the host clock."""
        self(inputs)
        clock: list[Any] = [time.perf_counter()]
        for _ in range(calls):
            self.launch()
            clock.append(time.perf_counter())
        return [last - first for first, last in itertools.pairwise(clock)]
