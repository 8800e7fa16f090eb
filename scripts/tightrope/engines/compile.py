"""torch.compile in the process that serves: nothing is kept but the weights."""

import time
from pathlib import Path
from typing import Any

import torch
from torch._inductor import config as inductor
from torch._inductor.utils import fresh_cache

from tightrope.manifest import read_manifest
from tightrope.torch_module import DTYPES, LogitsOnly, example_inputs, load_module, runner
from tightrope.torch_operators import profiled

Options = dict[str, Any]
# a batch of one is a program of its own to torch.compile
EXAMPLES = ((2, 16), (1, 16))


def build(
    source: Path, target: Path, *, precision: str, device: str, threads: int, options: Options
) -> dict[str, Any]:
    """Write the checkpoint's weights in that type into folder `target`, compiled once to see."""
    manifest = read_manifest(source)
    load_module(source.parent, DTYPES[precision]).save_pretrained(target)
    torch.set_num_threads(threads)
    began = time.perf_counter()
    module = compiled(target, precision)
    seconds = time.perf_counter() - began
    example = example_inputs(*EXAMPLES[0])
    with torch.inference_mode():
        executed = profiled(lambda: module(**example))
    return {
        "format": "safetensors",
        "executed": executed,
        "compile_s": seconds,
        "max_sequence": manifest["max_sequence"],
    }


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """`run(inputs) -> float32 logits [batch, classes]` for any batch and sequence."""
    torch.set_num_threads(threads)
    return runner(compiled(path, precision))


def compiled(folder: Path, precision: str) -> Any:
    """The classifier in `folder`, compiled with frozen weights, batch and sequence dynamic.

    From nothing each time: what a serving process on a new machine waits for.
    """
    inductor.freezing = True
    module = LogitsOnly(load_module(folder, DTYPES[precision])).eval()
    program = torch.compile(module, dynamic=True)
    with fresh_cache(), torch.inference_mode():
        for batch, sequence in EXAMPLES:
            program(**example_inputs(batch, sequence))
    return program
