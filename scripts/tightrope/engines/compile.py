"""torch.compile in the process that serves: nothing is kept but the weights."""

import time
from pathlib import Path
from typing import Any

import torch
from torch._inductor import config as inductor
from torch._inductor.utils import fresh_cache

from tightrope.artifacts.files import read_json
from tightrope.artifacts.manifest import read_manifest
from tightrope.model.module import DTYPES, example_inputs, load_module, logits_only
from tightrope.runtimes.torch.device import attention, prepare, runner_on, with_tf32
from tightrope.runtimes.torch.operators import profiled
from tightrope.signature import Signature, of_checkpoint, signature

Options = dict[str, Any]
# a batch of one is a program of its own to torch.compile
EXAMPLES = ((2, 16), (1, 16))
MOST_COMPILERS = 8
# see one row of a text, too few for the kernels of int8
HEADS = ("classifier", "pre_classifier", "pooler")


def build(
    source: Path, target: Path, *, precision: str, device: str, threads: int, options: Options
) -> dict[str, Any]:
    """Write the checkpoint's weights into folder `target`, compiled once to see.

    In the type that the engine computes in, where torchao quantizes them in bf16.
    """
    manifest = read_manifest(source)
    prepare(device, precision, threads)
    load_module(source.parent, dtype_of(precision)).save_pretrained(target)
    taken, began = of_checkpoint(manifest), time.perf_counter()
    module = compiled(target, taken, precision, device, options)
    seconds = time.perf_counter() - began
    with torch.inference_mode(), attention(options.get("attention", "auto")):
        # as the buffers of what serves: other tensors would be compiled for anew
        example = example_inputs(taken, *examples_of(device, options)[0], device)
        executed = profiled(lambda: module(**example))
    return {
        "format": "safetensors",
        "executed": with_tf32(executed, device),
        "compile_s": seconds,
        "inputs": taken.facts(),
        "max_sequence": manifest["max_sequence"],
    }


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """`run(inputs) -> float32 logits [batch, classes]` for requests of any size."""
    prepare(device, precision, threads)
    taken = signature(read_json(path / "engine.json")["inputs"])
    return runner_on(device, compiled(path, taken, precision, device, options), options)


def dtype_of(precision: str) -> torch.dtype:
    """The type of the weights in the file."""
    return DTYPES.get(precision, torch.bfloat16)


def examples_of(device: str, options: Options) -> list[tuple[int, int]]:
    """Rows and tokens to compile at; on a GPU the most, for which its kernels are then tuned."""
    if device == "cpu" or options["buckets"] is None:
        return list(EXAMPLES)
    largest = {axis: max(sizes) for axis, sizes in options["buckets"].items()}
    batch, sequence = largest["batch"], largest.get("sequence", EXAMPLES[0][1])
    # two sizes that are equal in the example would have to be so ever after
    rows = batch + (batch == sequence)
    return [(max(rows, 2), sequence), (1, sequence)]


def compiled(folder: Path, taken: Signature, precision: str, device: str, options: Options) -> Any:
    """The classifier in `folder`, compiled with frozen weights, its free axes dynamic.

    From nothing each time: what a serving process on a new machine waits for.
    """
    module = logits_only(load_module(folder, dtype_of(precision))).to(device)
    if device == "cuda":
        # each takes memory, which counts
        inductor.compile_threads = MOST_COMPILERS
    # quantized weights are tensors of torchao's own, which freezing cannot fold
    inductor.freezing = precision in DTYPES
    if precision not in DTYPES:
        quantize(module, precision)
    tuned = {"max_autotune": True} if options.get("autotune") else None
    # None: all axes but those that the examples mark are as they are
    every_axis = len(taken.free) == len(taken.inputs[0].shape) or None
    program = torch.compile(module, dynamic=every_axis, options=tuned)
    kind = attention(options.get("attention", "auto"))
    with fresh_cache(), torch.inference_mode(), kind:
        for batch, tokens in examples_of(device, options):
            example = example_inputs(taken, batch, tokens, device)
            if every_axis is None and batch > 1:
                for tensor in example.values():
                    torch._dynamo.mark_dynamic(tensor, 0)
            program(**example)
    return program


def quantize(module: torch.nn.Module, precision: str) -> None:
    """Round the large linear layers of `module` as torchao does, activations by each row's range.

    int8-dynamic: weights in int8 per output channel; fp8: both in E4M3, from Ada on.
    """
    from torchao.quantization import (
        Float8DynamicActivationFloat8WeightConfig,
        Int8DynamicActivationInt8WeightConfig,
        PerRow,
        quantize_,
    )

    kinds = {
        "int8-dynamic": Int8DynamicActivationInt8WeightConfig,
        "fp8": lambda: Float8DynamicActivationFloat8WeightConfig(granularity=PerRow()),
    }

    def large(layer: torch.nn.Module, name: str) -> bool:
        inner = name.removeprefix("classifier.").split(".")
        return isinstance(layer, torch.nn.Linear) and not set(HEADS) & set(inner)

    quantize_(module, kinds[precision](), large)
