"""ONNX Runtime on an NVIDIA GPU, with inputs and outputs bound to PyTorch's buffers."""

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from onnxruntime.capi import build_and_package_info

from tightrope.inputs.arrays import Arrays
from tightrope.machine.lacks import require_gpu
from tightrope.runtimes.buckets import Buckets
from tightrope.runtimes.cuda_program import CudaProgram, queue_on_gpu
from tightrope.runtimes.onnxruntime.session import Options, Providers, open_session
from tightrope.runtimes.program_by_shape import ByShape, Make

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


def cuda_provider(options: Options) -> tuple[str, dict[str, str]]:
    """Return the CUDA provider, with a CUDA graph per shape if the options have `graphs`."""
    graphs = str(bool(options["graphs"]))
    return CUDA, {"device_id": "0", "use_tf32": "0", "enable_cuda_graph": graphs}


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
