"""TorchScript: the traced and frozen module, a package that loads without transformers."""

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tightrope.artifacts.manifest import open_manifest, read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.engine_table import ONEDNN, Engine
from tightrope.inputs.arrays import example_of
from tightrope.model.module import DTYPES, example_inputs, logits_module
from tightrope.runtimes import torch_operators
from tightrope.runtimes.cuda_program import graphs_of, with_graphs
from tightrope.runtimes.torch_device import largest, prepare, runner_on, with_tf32
from tightrope.runtimes.torch_operators import profiled
from tightrope.signature import BATCH, Signature, of_checkpoint, signature

SPEC = Engine(
    precisions={"cpu": ("fp32", "bf16"), "cuda": ("fp32", "fp16")},
    libraries=("torch", "transformers"),
    source="checkpoint",
    about="traced and frozen",
    colour=("#9c818a", "#6b7574"),
    cuda=("graphs",),
    instructions=ONEDNN,
    profiled=True,
    bundled=("torch",),
)
FILE = "model.pt"
Options = dict[str, Any]
operator_times = torch_operators.operator_times


def build(
    source: Path, target: Path, *, precision: str, device: str, threads: int, options: Options
) -> dict[str, Any]:
    """Write the checkpoint of manifest `source` as TorchScript into folder `target`."""
    prepare(device, precision, threads)
    input_signature = of_checkpoint(read_manifest(source, CheckpointManifest))
    module = logits_module(source, DTYPES[precision])
    example = example_inputs(input_signature, 2, device=device)
    with torch.inference_mode(), warnings.catch_warnings():
        # the tracer warns of constants that only check the sizes of the example
        ignored = torch.jit.TracerWarning  # type: ignore[attr-defined]  # public, not in __all__
        warnings.simplefilter("ignore", ignored)
        traced = torch.jit.trace(module.to(device), example_kwarg_inputs=example, strict=False)
        frozen = torch.jit.freeze(traced)
        late = packs_late(input_signature, precision)
        # packed weights are for the CPU only
        packs = device == "cpu" and not late
        whole = torch.jit.optimize_for_inference(frozen) if packs else frozen
        whole.save(str(target / FILE))
        saved = loaded(target, device, late=late)
        executed = profiled(lambda: saved(**example))
    load = partial(runner_on, device, saved, options)
    return {
        "format": "torchscript",
        "executed": with_tf32(executed, device),
        **graphs_of(options, load, example_of(input_signature, *largest(options))),
    }


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """Return `run(inputs) -> float32 logits [batch, classes]` for requests of any size."""
    prepare(device, precision, threads)
    input_signature = signature(open_manifest(path / "engine.json", EngineManifest)["inputs"])
    program = loaded(path, device, late=packs_late(input_signature, precision))
    return runner_on(device, program, with_graphs(options, path))


def packs_late(input_signature: Signature, precision: str) -> bool:
    """Return whether weights are packed at load: packed fp32 convolutions cannot be saved."""
    return input_signature.free == (BATCH,) and precision == "fp32"


def loaded(path: Path, device: str, *, late: bool) -> torch.jit.ScriptModule:
    """Load the package in folder `path`, with weights packed for the CPU."""
    package = torch.jit.load(str(path / FILE), map_location=device)
    return torch.jit.optimize_for_inference(package) if late and device == "cpu" else package
