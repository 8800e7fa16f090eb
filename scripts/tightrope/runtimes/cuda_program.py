"""A program of PyTorch tensors at one shape: buffers made once, its launches one CUDA graph."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from tightrope.inputs.arrays import Arrays

# Tensors, int64 [batch, sequence] on the device, by name -> logits [batch, classes] there.
Program = Callable[..., torch.Tensor]
# before its launches are captured a program must have made what it makes once: plans, workspaces
WARM_UP = 3


class Queue(NamedTuple):
    """What programs share that run one after the other: a stream, and memory for their graphs.

    Both None on the CPU; without `pool` the host launches each kernel of each call.
    """

    stream: torch.cuda.Stream | None = None
    pool: Any = None


def queue_on_gpu(*, graphs: bool) -> Queue:
    """A queue of its own: TensorRT waits between launches on the default stream."""
    return Queue(torch.cuda.Stream(), torch.cuda.graph_pool_handle() if graphs else None)


class CudaProgram:
    """Logits of inputs of one shape, which are copied into buffers on the GPU and back.

    Without a stream in `queue` it does the same on the CPU.
    """

    def __init__(self, program: Program, inputs: Arrays, queue: Queue) -> None:
        self.program = program
        self.stream = queue.stream
        on_gpu = queue.stream is not None
        device = "cuda" if on_gpu else "cpu"
        with torch.inference_mode(), torch.cuda.stream(self.stream):
            staged = {name: torch.from_numpy(array.copy()) for name, array in inputs.items()}
            self.inputs = {name: tensor.to(device, copy=True) for name, tensor in staged.items()}
            self.staged = {k: t.pin_memory() for k, t in staged.items()} if on_gpu else staged
            self.logits = self.compute()
            self.graph = self.captured(queue.pool) if queue.pool else None
            self.fetched = torch.empty(self.logits.shape, pin_memory=on_gpu)

    def compute(self) -> torch.Tensor:
        """Logits, float32 on the device, of what the buffers hold."""
        return self.program(**self.inputs).float()

    def captured(self, pool: Any) -> torch.cuda.CUDAGraph:
        """What `compute` launches as one graph, which writes to `logits`."""
        for _ in range(WARM_UP):
            self.compute()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, stream=self.stream):
            self.logits = self.compute()
        return graph

    def launch(self) -> None:
        """Queue the computation."""
        if self.graph is not None:
            self.graph.replay()
        else:
            self.logits = self.compute()

    def __call__(self, inputs: Arrays) -> np.ndarray:
        """Logits of inputs of this shape, when they are there."""
        with torch.inference_mode(), torch.cuda.stream(self.stream):
            for name, array in inputs.items():
                self.staged[name].numpy()[...] = array
                self.inputs[name].copy_(self.staged[name], non_blocking=True)
            self.launch()
            self.fetched.copy_(self.logits)  # waits for all that was queued before
        return self.fetched.numpy().copy()

    def device_seconds(self, inputs: Arrays, calls: int) -> list[float]:
        """Seconds of each of `calls` calls by events of the GPU, without transfers.

        Without a graph a call includes the gaps in which the GPU waits for the host.
        """
        self(inputs)
        pairs = []
        with torch.inference_mode(), torch.cuda.stream(self.stream):
            for _ in range(calls):
                pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
                pair[0].record()
                self.launch()
                pair[1].record()
                pairs.append(pair)
            torch.cuda.synchronize()
        return [first.elapsed_time(last) / 1e3 for first, last in pairs]
