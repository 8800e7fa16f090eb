"""PyTorch program at one shape: fixed buffers, kernels optionally captured as a CUDA graph."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.errors import in_one_line, is_out_of_memory
from tightrope.inputs.arrays import Arrays
from tightrope.machine.lacks import require_same_gpu

# tensors by name, int64 [batch, sequence] -> logits [batch, classes], all on the device
Program = Callable[..., torch.Tensor]
# calls before graph capture, in which a program makes its one-time plans and workspaces
WARM_UP = 3
# ONNX Runtime captures at the first or second call, and replays after that; others replay at each
REPLAYED = 4


class Queue(NamedTuple):
    """What programs that run one after the other share: stream, graph memory pool, scratch memory.

    All are None on the CPU. Without `pool` nothing is captured: the host launches each kernel.
    `scratch` is for runtimes that do not allocate their own.
    """

    stream: torch.cuda.Stream | None = None
    pool: Any = None
    scratch: Any = None


def queue_on_gpu(*, graphs: bool) -> Queue:
    """Return a queue with a new stream: TensorRT waits between launches on the default stream.

    PyTorch has 32 streams in all and gives them out in turn. Raises WorkFailed where this is not
    the GPU that is recorded.
    """
    require_same_gpu(str(torch.cuda.get_device_properties(0).uuid))
    return Queue(torch.cuda.Stream(), torch.cuda.graph_pool_handle() if graphs else None, [])


def scratch_of(queue: Queue, size: int) -> torch.Tensor:
    """Return scratch memory on the GPU of at least `size` bytes, which a program has to hold."""
    if not queue.scratch or queue.scratch[0].nbytes < size:
        queue.scratch[:] = [torch.empty(size, dtype=torch.uint8, device="cuda")]
    return cast(torch.Tensor, queue.scratch[0])


def graphs_of(
    options: dict[str, Any], load: Callable[[], Callable[[Arrays], Any]], example: Arrays
) -> dict[str, str | None]:
    """Return `graphs_refused`, the reason why what `load` returns has no CUDA graph, or None.

    Empty where it is to have none. A failed capture may leave the process without a usable GPU:
    ask it last. Where memory ran out that is raised.
    """
    if not options.get("graphs"):
        return {}
    try:
        run = load()
        for _ in range(REPLAYED):
            run(example)
    except Exception as error:  # runtimes raise no specific class
        if is_out_of_memory(error):
            raise
        return {"graphs_refused": in_one_line(error)}
    return {"graphs_refused": None}


def with_graphs(options: dict[str, Any], engine: Path) -> dict[str, Any]:
    """Return the options without `graphs` where the build of the engine found that it has none."""
    refused = open_manifest(engine / "engine.json", EngineManifest).get("graphs_refused")
    return {**options, "graphs": options.get("graphs", False) and refused is None}


class CudaProgram:
    """Program at one input shape: copies inputs into buffers on the GPU and logits back.

    Without a stream in `queue` it does the same on the CPU. The buffers are its own; what the queue
    holds lives as long as the program.
    """

    def __init__(self, program: Program, inputs: Arrays, queue: Queue) -> None:
        self.program = program
        self.queue = queue
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
        """Return the logits of the input buffers, float32 on the device."""
        return self.program(**self.inputs).float()

    def captured(self, pool: Any) -> torch.cuda.CUDAGraph:
        """Capture `compute` as a CUDA graph that writes to `logits`."""
        for _ in range(WARM_UP):
            self.compute()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # a runtime may call CUDA in threads of its own meanwhile
        mode = "thread_local"
        with torch.cuda.graph(graph, pool=pool, stream=self.stream, capture_error_mode=mode):
            self.logits = self.compute()
        return graph

    def launch(self) -> None:
        """Queue the computation."""
        if self.graph is not None:
            self.graph.replay()
        else:
            self.logits = self.compute()

    def __call__(self, inputs: Arrays) -> np.ndarray:
        """Return the logits of inputs of this shape; wait for them."""
        self.enqueue(inputs)
        return self.wait()

    def enqueue(self, inputs: Arrays) -> None:
        """Queue copies and computation for inputs of this shape; each needs a `wait` of its own."""
        with torch.inference_mode(), torch.cuda.stream(self.stream):
            for name, array in inputs.items():
                self.staged[name].numpy()[...] = array
                self.inputs[name].copy_(self.staged[name], non_blocking=True)
            self.launch()
            self.fetched.copy_(self.logits, non_blocking=True)

    def wait(self) -> np.ndarray:
        """Wait for all work on the stream; return the logits of the last `enqueue`."""
        if self.stream is not None:
            self.stream.synchronize()
        return self.fetched.numpy().copy()

    def release(self) -> None:
        """Free what the program itself holds, such as ONNX Runtime's CUDA graph."""
        if hasattr(self.program, "release"):
            self.program.release()

    def device_seconds(self, inputs: Arrays, calls: int) -> list[float]:
        """Return the seconds of each of `calls` calls by CUDA events, without transfers.

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
