"""What each activation costs: memory kept for the backward, and time relative to GELU.

    taskset -c 0,1 .venv/bin/python benchmarks/studies/activations.py [--rounds 15] [--tokens 2048]

Prints Markdown tables: bytes that autograd keeps for an element, and the peak of memory of a
training step of eight MLP blocks (width to 4 x width and back); times of the activation alone and
of one block, eager, compiled with frozen weights, in ONNX Runtime and OpenVINO, in fp32. Times are
ratios to GELU's in the same way of running, by turns, with a 95 % interval; below 1 is faster.
"""

import argparse
import ctypes
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import openvino
import torch
from torch import nn
from torch._inductor import config as inductor

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from tightrope.jobs.child import Limits, supervised
from tightrope.machine.processes import peak_rss_bytes
from tightrope.model.activations import ACTIVATIONS, fast_swish_formula, make_activation
from tightrope.statistics import speedup

Call = Callable[[], object]
BASELINE = "gelu"
PLAIN = "fast_swish, plain autograd"
BLOCK_SECONDS = 0.1
LAYERS = 8
MALLOC_MMAP_THRESHOLD = -3  # of malloc.h
LIMITS = Limits(memory_bytes=32e9, seconds=1200)


class Plain(nn.Module):
    """FastSwish as PyTorch's autograd differentiates it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """FastSwish of every element of `x`."""
        return fast_swish_formula(x)


def main() -> None:
    """Print the table of memory, then that of times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    shape, names = (options.tokens, options.width), [*ACTIVATIONS, PLAIN]
    print("| activation | kept, bytes an element | step of the blocks, MB above GELU's |")
    print("| --- | ---: | ---: |")
    peaks = {name: supervised(step_peak, name, shape, limits=LIMITS) for name in names}
    for name in names:
        kept = supervised(kept_bytes, name, limits=LIMITS)
        print(f"| {name} | {kept:g} | {(peaks[name] - peaks[BASELINE]) / 1e6:+.1f} |", flush=True)
    print("\n| what is timed | " + " | ".join(ACTIVATIONS) + " |")
    print("| --- |" + " ---: |" * len(ACTIVATIONS))
    for title, prepare in WAYS.items():
        work = (prepare, shape, options.rounds, options.threads)
        print(f"| {title} | " + " | ".join(supervised(ratios, *work, limits=LIMITS)) + " |")


def activation_of(name: str) -> nn.Module:
    """The module of a row of the first table."""
    return Plain() if name == PLAIN else make_activation(name)


def block_of(activation: nn.Module, width: int) -> nn.Module:
    """The feed-forward of a transformer or of ConvNeXt."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(width, 4 * width), activation, nn.Linear(4 * width, width)
    ).eval()


def kept_bytes(name: str) -> float:
    """Bytes of storage that autograd keeps for the backward of an element in fp32."""
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    x = torch.randn(10_000, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = activation_of(name)(x)
    return sum(kept.values()) / result.numel()


def step_peak(name: str, shape: tuple[int, int]) -> int:
    """Peak of resident memory of a process that does one step of the blocks, bytes."""
    # each tensor in pages of its own, which go back when it is gone
    ctypes.CDLL(None).mallopt(MALLOC_MMAP_THRESHOLD, 1 << 16)
    blocks = nn.Sequential(*(block_of(activation_of(name), shape[1]) for _ in range(LAYERS)))
    blocks(torch.randn(shape)).square().sum().backward()
    return peak_rss_bytes()


def ratios(
    prepare: Callable[[nn.Module, torch.Tensor], Call],
    shape: tuple[int, int],
    rounds: int,
    threads: int,
) -> list[str]:
    """GELU's milliseconds, and each activation's time over it with its interval."""
    torch.set_num_threads(threads)
    x = torch.randn(shape) * 2
    with torch.inference_mode():
        calls = {name: prepare(make_activation(name), x) for name in ACTIVATIONS}
        blocks = timed(calls, rounds)
    found = []
    for name in ACTIVATIONS:
        if name == BASELINE:
            found.append(f"{1e3 * np.median(blocks[name]):.2f} ms")
        else:
            ratio = speedup(blocks[BASELINE], blocks[name])
            found.append(f"{ratio.value:.2f} ({ratio.low:.2f}-{ratio.high:.2f})")
    return found


def timed(calls: dict[str, Call], rounds: int) -> dict[str, list[list[float]]]:
    """Seconds of calls by name: in each round a block of every one, in turning order."""
    counts = {}
    for name, call in calls.items():
        for _ in range(3):
            began = time.perf_counter()
            call()
        counts[name] = max(1, round(BLOCK_SECONDS / (time.perf_counter() - began)))
    blocks: dict[str, list[list[float]]] = {name: [] for name in calls}
    names = list(calls)
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            blocks[name].append([seconds_of(calls[name]) for _ in range(counts[name])])
    return blocks


def seconds_of(call: Call) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def compiled(module: nn.Module, x: torch.Tensor) -> Call:
    """The module by Inductor, its weights frozen."""
    with inductor.patch(freezing=True):
        program = torch.compile(module, dynamic=False)
        program(x)
    return lambda: program(x)


def alone(activation: nn.Module, x: torch.Tensor) -> Call:
    """The activation itself, eager, on 4 x width."""
    wide = x.repeat(1, 4)
    return lambda: activation(wide)


def alone_compiled(activation: nn.Module, x: torch.Tensor) -> Call:
    """The activation itself, compiled, on 4 x width."""
    return compiled(activation, x.repeat(1, 4))


def in_block(activation: nn.Module, x: torch.Tensor) -> Call:
    """The block, eager."""
    block = block_of(activation, x.shape[1])
    return lambda: block(x)


def in_block_compiled(activation: nn.Module, x: torch.Tensor) -> Call:
    """The block, compiled."""
    return compiled(block_of(activation, x.shape[1]), x)


def exported(activation: nn.Module, x: torch.Tensor) -> bytes:
    """The block as an ONNX file."""
    program = torch.onnx.export(
        block_of(activation, x.shape[1]), (x,), opset_version=21, dynamo=True, verbose=False
    )
    return program.model_proto.SerializeToString()


def in_onnxruntime(activation: nn.Module, x: torch.Tensor) -> Call:
    """The block in ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    # spinning threads would take the processor of the next one in turn
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    content = exported(activation, x)
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    given = {session.get_inputs()[0].name: x.numpy()}
    return lambda: session.run(None, given)


def in_openvino(activation: nn.Module, x: torch.Tensor) -> Call:
    """The block in OpenVINO."""
    core = openvino.Core()
    settings = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "NUM_STREAMS": 1,
    }
    model = core.read_model(io.BytesIO(exported(activation, x)))
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    given = x.numpy()
    return lambda: request.infer([given])


WAYS = {
    "activation, eager": alone,
    "activation, compiled": alone_compiled,
    "block, eager": in_block,
    "block, compiled": in_block_compiled,
    "block, ONNX Runtime": in_onnxruntime,
    "block, OpenVINO": in_openvino,
}


if __name__ == "__main__":
    main()
