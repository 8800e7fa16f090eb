"""AOTInductor: a compiled package (.pt2) that loads without transformers and without a compiler."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package
from torch._inductor import config as inductor

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import example_of
from tightrope.int8.calibrate import calibration_batches, read_cache
from tightrope.int8.ranges import LearntRanges
from tightrope.model.module import DTYPES, dynamic_shapes, example_inputs, logits_module, runner
from tightrope.runtimes.cuda_program import graphs_of, with_graphs
from tightrope.runtimes.torch.device import largest, prepare, runner_on, tuned_for, with_tf32
from tightrope.runtimes.torch.operators import in_graph, logged_by_onednn
from tightrope.signature import Signature, of_checkpoint
from tightrope.variants import QAT

FILE = "model.pt2"
# profiles name kernels by the second; without a profiler a kernel only asks whether there is one
COMPILED: dict[str, dict[str, Any]] = {
    "cpu": {"freezing": True, "cpp.enable_kernel_profile": True},
    "cuda": {"freezing": True},
}
Options = dict[str, Any]


def build(
    source: Path,
    target: Path,
    *,
    precision: str,
    device: str,
    threads: int,
    options: Options,
    samples: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Compile the checkpoint of manifest `source` into a package in folder `target`.

    Weights are frozen, so that oneDNN packs them at load. int8 needs `samples`, see
    `calibration_batches`.
    """
    prepare(device, precision, threads)
    manifest = read_manifest(source, CheckpointManifest)
    input_signature, longest = of_checkpoint(manifest), manifest["max_sequence"]
    module = logits_module(source, DTYPES.get(precision, torch.float32)).to(device)
    example = example_inputs(input_signature, *tuned_for(options), device=device)
    tuned = bool(options.get("autotune"))
    with torch.no_grad(), inductor.patch({**COMPILED[device], "max_autotune": tuned}):
        if precision == "int8":
            float_module = exported(module, input_signature, longest, example).module()
            module = quantized(float_module, samples or {}, reduced=options["reduce_range"])
        graph = exported(module, input_signature, longest, example)
        aoti_compile_and_package(graph, package_path=str(target / FILE))
    program = loaded(target, device)
    request = example_of(input_signature, *largest(options))
    return {
        "format": "aotinductor-package",
        "executed": logged_by_onednn(partial(runner(program), request))
        if device == "cpu"
        else with_tf32(in_graph(graph), device),
        **graphs_of(options, partial(runner_on, device, program, options), request),
    }


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """Return `run(inputs) -> float32 logits [batch, classes]` for requests of any size."""
    prepare(device, precision, threads)
    return runner_on(device, loaded(path, device), with_graphs(options, path))


def loaded(folder: Path, device: str) -> Any:
    """Load the package in a folder, on a GPU without locks, which no CUDA graph can capture."""
    return aoti_load_package(str(folder / FILE), run_single_threaded=device == "cuda")


def exported(
    module: torch.nn.Module, input_signature: Signature, longest: int | None, example: Any
) -> Any:
    """Export the module with torch.export at an example, with dynamic free axes."""
    axes = dynamic_shapes(input_signature, longest)
    return torch.export.export(module, (), kwargs=example, dynamic_shapes=axes)


def quantized(
    module: torch.fx.GraphModule, samples: dict[str, str], *, reduced: bool
) -> torch.nn.Module:
    """Quantize `module` to int8 with torchao's x86 quantizer: u8 activations, s8 weights.

    Ranges are minmax on `samples`, or for the method `qat` those that the checkpoint has learnt.
    `reduced` limits activations to 7 bits.
    """
    from torchao.quantization.pt2e import MinMaxObserver
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (
        X86InductorQuantizer,
        get_default_x86_inductor_quantization_config,
    )

    config = get_default_x86_inductor_quantization_config(reduce_range=reduced)
    # the default observer is a histogram
    activation = replace(config.input_activation, observer_or_fake_quant_ctr=MinMaxObserver)
    quantizer = X86InductorQuantizer()
    learnt = read_cache(samples["calibration"], model=samples["onnx"])["method"] == QAT
    # the default scale of weights is for -128 to 127; they were trained with -127 to 127
    weight = replace(config.weight, quant_min=-127) if learnt else config.weight
    quantizer.set_global(replace(config, input_activation=activation, weight=weight))
    observed = prepare_pt2e(module, quantizer)
    for batch in calibration_batches(**samples):
        observed(**{name: torch.from_numpy(array) for name, array in batch.items()})
    if learnt:
        set_ranges(observed, LearntRanges(samples["checkpoint"]).of_weights)
    return convert_pt2e(observed)


def set_ranges(
    observed: torch.fx.GraphModule, range_of: Callable[[np.ndarray], list[float] | None]
) -> None:
    """Give the observers of what linear layers and convolutions read ranges of other origin.

    `range_of` returns [low, high] for the weights [outputs, ...] of an operator, or None where the
    observed range is to stay. Raises TightropeError where it does so for all.
    """
    observers: dict[Any, Any] = dict(observed.named_modules())
    constants, found = observed.state_dict(), 0
    for node in observed.graph.nodes:
        read = node.all_input_nodes if node.op == "call_function" else []
        observer, weights, *_ = [*(one for one in read if one.op == "call_module"), None, None]
        if observer is None or weights is None or weights.args[0].op != "get_attr":
            continue
        pair = range_of(constants[weights.args[0].target].numpy())
        if pair is not None:
            observers[observer.target].min_val.fill_(pair[0])
            observers[observer.target].max_val.fill_(pair[1])
            found += 1
    if not found:
        raise TightropeError("no operator has the weights of a module with a learnt range")
