"""PyTorch eager: the baseline of the other engines."""

import warnings
from pathlib import Path
from typing import Any

import torch

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.engine_table import ONEDNN, Engine
from tightrope.model.module import DTYPES, example_inputs, load_module, logits_only
from tightrope.model.unpadded import PRECISIONS, unpadded
from tightrope.runtimes import torch_operators
from tightrope.runtimes.torch_device import VARLEN, attention, prepare, runner_on, with_tf32
from tightrope.runtimes.torch_operators import profiled
from tightrope.signature import of_checkpoint

SPEC = Engine(
    precisions={"cpu": ("fp32", "bf16", "int8-dynamic"), "cuda": ("fp32", "tf32", "bf16", "fp16")},
    libraries=("torch", "transformers"),
    source="checkpoint",
    about="eager; fp32 is the baseline",
    colour=("#2b3032", "#dfe7f1"),
    cuda=("attention",),
    instructions=ONEDNN,
    profiled=True,
    bundled=("torch", "transformers"),
)
Options = dict[str, Any]
operator_times = torch_operators.operator_times


def build(
    source: Path, target: Path, *, precision: str, device: str, threads: int, options: Options
) -> dict[str, Any]:
    """Write the checkpoint's weights into folder `target`, in fp32 for int8-dynamic."""
    input_signature = of_checkpoint(read_manifest(source, CheckpointManifest))
    prepare(device, precision, threads)
    stored: Any = load_module(source.parent, DTYPES.get(precision, torch.float32))
    stored.save_pretrained(target)
    del stored  # the engine is loaded from what was written
    module = on_device(target, precision, device, options)
    example = example_inputs(input_signature, 2, device=device)
    with torch.inference_mode(), attention(options.get("attention", "auto")):
        executed = profiled(lambda: module(**example))
    return {"format": "safetensors", "executed": with_tf32(executed, device)}


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """Return `run(inputs) -> float32 logits [batch, classes]` for requests of any size."""
    prepare(device, precision, threads)
    return runner_on(device, on_device(path, precision, device, options), options)


def on_device(folder: Path, precision: str, device: str, options: Options) -> torch.nn.Module:
    """Load the classifier in `folder` onto the device; for int8-dynamic quantize its linear layers.

    Uses torch.ao: torchao's eager kernels take as long as fp32 on a CPU (docs/results/cpu.md).
    Weights are int8 per output channel, activations u8 by the range of each call. With `attention:
    varlen` it runs without padding.
    """
    module = logits_only(load_module(folder, DTYPES.get(precision, torch.float32))).to(device)
    if precision == "int8-dynamic":
        from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return quantize_dynamic(module, {torch.nn.Linear: per_channel_dynamic_qconfig})
    if options.get("attention") != VARLEN or precision not in PRECISIONS:
        return module
    from torch.nn.attention.varlen import varlen_attn

    return unpadded(module, varlen_attn)
