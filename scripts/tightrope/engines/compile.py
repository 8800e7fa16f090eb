"""torch.compile in the serving process: only the weights are stored."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch._inductor import config as inductor
from torch._inductor.utils import fresh_cache

from tightrope.artifacts.manifest import open_manifest, read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.model.module import DTYPES, example_inputs, load_module, logits_only
from tightrope.runtimes.cuda_program import with_graphs
from tightrope.runtimes.torch.device import attention, graphs_of, prepare, runner_on, with_tf32
from tightrope.runtimes.torch.operators import profiled
from tightrope.signature import Signature, of_checkpoint, signature

Options = dict[str, Any]
Tuning = dict[str, str | int | bool | Callable[..., Any]]
# torch.compile specializes batch 1: it gets a program of its own
EXAMPLES = ((2, 16), (1, 16))
# layers with one row per text, too few for the int8 kernels
HEADS = ("classifier", "pre_classifier", "pooler")


def build(
    source: Path, target: Path, *, precision: str, device: str, threads: int, options: Options
) -> dict[str, Any]:
    """Write the checkpoint's weights into folder `target`, and compile them once as a check.

    The weights have the dtype that the engine computes in, bf16 where torchao quantizes them.
    """
    manifest = read_manifest(source, CheckpointManifest)
    prepare(device, precision, threads)
    stored: Any = load_module(source.parent, dtype_of(precision))
    stored.save_pretrained(target)
    del stored  # the engine is loaded from what was written
    input_signature, began = of_checkpoint(manifest), time.perf_counter()
    module = compiled(target, input_signature, precision, device, options)
    seconds = time.perf_counter() - began
    with torch.inference_mode(), attention(options.get("attention", "auto")):
        # inference tensors, as in serving: other tensors would trigger a recompilation
        example = example_inputs(input_signature, *examples_of(device, options)[0], device)
        executed = profiled(lambda: module(**example))
    request = {name: tensor.cpu().numpy() for name, tensor in example.items()}
    return {
        "format": "safetensors",
        "executed": with_tf32(executed, device),
        "compile_s": seconds,
        "inputs": input_signature.facts(),
        "max_sequence": manifest["max_sequence"],
        **graphs_of(device, module, options, request),
    }


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """Return `run(inputs) -> float32 logits [batch, classes]` for requests of any size."""
    prepare(device, precision, threads)
    input_signature = signature(open_manifest(path / "engine.json", EngineManifest)["inputs"])
    options = with_graphs(options, path)
    return runner_on(device, compiled(path, input_signature, precision, device, options), options)


def dtype_of(precision: str) -> torch.dtype:
    """Return the dtype of the stored weights."""
    return DTYPES.get(precision, torch.bfloat16)


def examples_of(device: str, options: Options) -> list[tuple[int, int]]:
    """Return (rows, tokens) to compile at; on a GPU the largest, which kernels are tuned for."""
    if device == "cpu" or options["buckets"] is None:
        return list(EXAMPLES)
    largest = {axis: max(sizes) for axis, sizes in options["buckets"].items()}
    batch, sequence = largest["batch"], largest.get("sequence", EXAMPLES[0][1])
    # sizes that are equal in the example would be compiled as one dimension
    rows = batch + (batch == sequence)
    return [(max(rows, 2), sequence), (1, sequence)]


def compiled(
    folder: Path, input_signature: Signature, precision: str, device: str, options: Options
) -> Any:
    """Compile the classifier in `folder` with frozen weights and dynamic free axes.

    Without caches: the compile time is the cold start of a serving process on a new machine.
    """
    module = logits_only(load_module(folder, dtype_of(precision))).to(device)
    # freezing cannot fold torchao's tensor subclasses of quantized weights
    inductor.freezing = precision in DTYPES
    if precision not in DTYPES:
        quantize(module, precision)
    tuned: Tuning | None = {"max_autotune": True} if options.get("autotune") else None
    # None: only the axes that the examples mark are dynamic
    every_axis = len(input_signature.free) == len(input_signature.inputs[0].shape) or None
    program = torch.compile(module, dynamic=every_axis, options=tuned)
    kind = attention(options.get("attention", "auto"))
    with fresh_cache(), torch.inference_mode(), kind:
        for batch, tokens in examples_of(device, options):
            example = example_inputs(input_signature, batch, tokens, device)
            if every_axis is None and batch > 1:
                for tensor in example.values():
                    torch._dynamo.mark_dynamic(tensor, 0)
            program(**example)
    return program


def quantize(module: torch.nn.Module, precision: str) -> None:
    """Quantize the large linear layers of `module` with torchao, activations per row at run time.

    int8-dynamic: int8 weights per output channel. fp8: weights and activations in E4M3, from the
    Ada GPU generation on.
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
