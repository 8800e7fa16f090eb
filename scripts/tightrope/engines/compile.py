"""torch.compile in the serving process: the weights are stored, on a GPU with what was tuned."""

import tarfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch._dynamo import config as dynamo
from torch._inductor import config as inductor
from torch._inductor.runtime.cache_dir_utils import cache_dir
from torch._inductor.utils import fresh_cache

from tightrope.artifacts.manifest import open_manifest, read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.engine_table import ONEDNN, Engine
from tightrope.model.module import DTYPES, example_inputs, load_module, logits_only
from tightrope.runtimes import torch_operators
from tightrope.runtimes.cuda_program import Program, graphs_of, with_graphs
from tightrope.runtimes.shapes import Bucket
from tightrope.runtimes.torch_device import (
    attention,
    buckets_of,
    measured,
    prepare,
    runner_on,
    tuned_for,
    with_tf32,
)
from tightrope.runtimes.torch_operators import profiled
from tightrope.signature import Signature, of_checkpoint, signature, sizes_of

SPEC = Engine(
    precisions={
        "cpu": ("fp32", "bf16"),
        "cuda": ("fp32", "tf32", "bf16", "fp16", "int8-dynamic", "fp8"),
    },
    libraries=("torch", "transformers", "torchao"),
    source="checkpoint",
    about="torch.compile",
    colour=("#975213", "#ff9d4e"),
    compiler=True,
    cuda=("attention", "autotune", "graphs"),
    instructions=ONEDNN,
    mem_mb=16000,
    minutes=60,
)
Options = dict[str, Any]
Tuning = dict[str, str | int | bool | Callable[..., Any]]
# Inductor's cache as the build left it
CACHE = "compiled.tar.gz"
# layers with one row per text, too few for the int8 kernels
HEADS = ("classifier", "pre_classifier", "pooler")
operator_times = torch_operators.operator_times


def build(
    source: Path, target: Path, *, precision: str, device: str, threads: int, options: Options
) -> dict[str, Any]:
    """Write the checkpoint's weights into folder `target`, and compile them once as a check.

    The weights have the dtype that the engine computes in, bf16 where torchao quantizes them.
    `compile_s` is the cold start of a serving process on a new machine. On a GPU Inductor's cache
    is kept with the weights: a load tunes nothing again, and has the kernels that were judged.
    """
    input_signature = of_checkpoint(read_manifest(source, CheckpointManifest))
    prepare(device, precision, threads)
    stored: Any = load_module(source.parent, DTYPES.get(precision, torch.bfloat16))
    stored.save_pretrained(target)
    del stored  # the engine is loaded from what was written
    began = time.perf_counter()
    with fresh_cache():
        module = compiled(target, input_signature, precision, device, options)
        seconds = time.perf_counter() - began
        if "autotune" in options:
            keep_cache(target / CACHE)
    with torch.inference_mode(), attention(options.get("attention", "auto")):
        # inference tensors, as in serving: other tensors would trigger a recompilation
        shape = [*measured(options), *examples_of(options)][0]
        example = example_inputs(input_signature, *shape, device=device)
        executed = profiled(lambda: module(**example))
    request = {name: tensor.cpu().numpy() for name, tensor in example.items()}
    return {
        "format": "safetensors",
        "executed": with_tf32(executed, device),
        "compile_s": seconds,
        **graphs_of(options, partial(runner_on, device, module, options), request),
    }


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """Return `run(inputs) -> float32 logits [batch, classes]` for requests of any size."""
    prepare(device, precision, threads)
    input_signature = signature(open_manifest(path / "engine.json", EngineManifest)["inputs"])
    with fresh_cache():
        if (path / CACHE).is_file():
            with tarfile.open(path / CACHE) as archive:
                archive.extractall(cache_dir(), filter="data")
        # the programs that the build has tuned, though a capture was refused
        program = compiled(path, input_signature, precision, device, options)
    options = with_graphs(options, path)
    dynamo.error_on_recompile = buckets_of(options) is not None
    return runner_on(device, program, options)


def keep_cache(file: Path) -> None:
    """Store Inductor's cache: graphs with their kernels, and the times of all candidates.

    Triton's own files of candidates that were not chosen are left out; they may be a gigabyte.
    """
    with tarfile.open(file, "w:gz") as archive:
        for part in Path(cache_dir()).iterdir():
            if part.name != "triton":
                archive.add(part, part.name)


def examples_of(options: Options) -> list[Bucket]:
    """Return shapes at which to call the program for any shape, until it compiles nothing more.

    torch.compile specializes batch 1: it gets a program of its own. Where requests are padded to
    buckets these are all that are not measured, the largest first.
    """
    buckets, first = buckets_of(options), tuned_for(options)
    if buckets is None:
        return [first, (1, *first[1:])]
    others = [shape for shape in reversed(buckets.all()) if shape not in measured(options)]
    return [first, *others] if any(shape[0] > 1 for shape in others) else others


def compiled(
    folder: Path, input_signature: Signature, precision: str, device: str, options: Options
) -> Program:
    """Compile the classifier in `folder` with frozen weights: for each measured shape, and for any.

    Where requests are padded to buckets all their shapes are known: another compilation, which
    would be within a timed call, is then an error of that call.
    """
    dtype = DTYPES.get(precision, torch.bfloat16)
    module = logits_only(load_module(folder, dtype)).to(device)
    # freezing cannot fold torchao's tensor subclasses of quantized weights
    inductor.freezing = precision in DTYPES
    if precision not in DTYPES:
        quantize(module, precision)
    tuned: Tuning | None = {"max_autotune": True} if options.get("autotune") else None
    # None: only the axes that the examples mark are dynamic
    every_axis = len(input_signature.free) == len(input_signature.inputs[0].shape) or None
    fixed = torch.compile(module, dynamic=False, options=tuned)
    free = torch.compile(module, dynamic=every_axis, options=tuned)
    shapes, kind = measured(options), attention(options.get("attention", "auto"))
    dynamo.error_on_recompile = False
    limit = dynamo.patch(recompile_limit=len(shapes) + dynamo.recompile_limit)
    with limit, torch.inference_mode(), kind:
        for shape in shapes:
            fixed(**example_inputs(input_signature, *shape, device=device))
        for shape in examples_of(options):
            example = example_inputs(input_signature, *shape, device=device)
            if every_axis is None and shape[0] > 1:
                for tensor in example.values():
                    torch._dynamo.mark_dynamic(tensor, 0)
            free(**example)
    dynamo.error_on_recompile = buckets_of(options) is not None
    return lambda **inputs: (fixed if sizes_of(inputs) in shapes else free)(**inputs)


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
