"""TorchScript: the traced and frozen module, a package that loads without transformers."""

import warnings
from pathlib import Path
from typing import Any

import torch

from tightrope.manifest import read_manifest
from tightrope.torch_module import DTYPES, example_inputs, logits_module, runner
from tightrope.torch_operators import profiled

FILE = "model.pt"
Options = dict[str, Any]


def build(
    source: Path, target: Path, *, precision: str, device: str, threads: int, options: Options
) -> dict[str, Any]:
    """Write the checkpoint of manifest `source` as TorchScript into folder `target`."""
    torch.set_num_threads(threads)
    module, example = logits_module(source, DTYPES[precision]), example_inputs(2, 8)
    with torch.inference_mode(), warnings.catch_warnings():
        # constants that the tracer warns of are checks of the sizes of the example
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        traced = torch.jit.trace(module, example_kwarg_inputs=example, strict=False)
        torch.jit.optimize_for_inference(torch.jit.freeze(traced)).save(str(target / FILE))
        saved = torch.jit.load(str(target / FILE))
        executed = profiled(lambda: saved(**example))
    return {
        "format": "torchscript",
        "executed": executed,
        "max_sequence": read_manifest(source)["max_sequence"],
    }


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """`run(inputs) -> float32 logits [batch, classes]` for any batch and sequence."""
    torch.set_num_threads(threads)
    return runner(torch.jit.load(str(path / FILE)))
