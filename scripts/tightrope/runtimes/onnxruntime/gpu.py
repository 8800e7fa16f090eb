"""ONNX Runtime on an NVIDIA GPU: inputs and outputs bound to buffers there."""

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
# of a run that is not captured
NO_GRAPH = "-1"


def prepare() -> None:
    """Load the CUDA libraries that pip has installed; TF32 off for all of this process.

    Raises WorkFailed where there is no GPU, or none that this ONNX Runtime can use.
    """
    cuda = getattr(build_and_package_info, "cuda_version", None)
    require_gpu(f"ONNX Runtime {onnxruntime.__version__}", cuda)
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    onnxruntime.preload_dlls()


def load_tensorrt() -> None:
    """Load the TensorRT to which this ONNX Runtime is linked; WorkFailed where it is not there."""
    for library in linked_tensorrt():
        if not loaded(library):
            raise WorkFailed(without_tensorrt(library), transient=False)


def cuda_provider(options: Options) -> tuple[str, dict[str, str]]:
    """The CUDA provider, with a CUDA graph for each shape where the options have `graphs`."""
    graphs = str(bool(options["graphs"]))
    return CUDA, {"device_id": "0", "use_tf32": "0", "enable_cuda_graph": graphs}


def without_graphs(providers: Providers) -> Providers:
    """The same providers for a session that is profiled: a replayed graph names no operator."""
    return [
        (name, {**settings, "enable_cuda_graph": "False"} if name == CUDA else settings)
        for name, settings in providers
    ]


def bound_runner(
    session: onnxruntime.InferenceSession, options: Options
) -> Callable[[Arrays], np.ndarray]:
    """`run(inputs) -> float32 logits [batch, classes]`, of buckets where there are graphs."""
    numbers = itertools.count(1)
    graphs = options["graphs"]
    buckets = Buckets(options["buckets"]) if graphs and options.get("buckets") else None

    def make(inputs: Arrays) -> BoundProgram:
        return BoundProgram(session, inputs, str(next(numbers)) if graphs else NO_GRAPH)

    return ByShape(make, buckets)


class BoundProgram:
    """A session at one shape: its buffers are bound once, `graph` numbers its CUDA graph."""

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
        """Compute from what is in the buffers; done when this returns."""
        self.session.run_with_iobinding(self.binding, self.options)

    def __call__(self, inputs: Arrays) -> np.ndarray:
        """Logits of inputs of this shape, copied to the host."""
        for name, array in inputs.items():
            self.inputs[name].update_inplace(array)
        self.launch()
        return np.array(self.logits.numpy())

    def device_seconds(self, inputs: Arrays, calls: int) -> list[float]:
        """Seconds of each of `calls` calls without transfers, by the host's clock."""
        self(inputs)
        clock: list[Any] = [time.perf_counter()]
        for _ in range(calls):
            self.launch()
            clock.append(time.perf_counter())
        return [last - first for first, last in itertools.pairwise(clock)]
