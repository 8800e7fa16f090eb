"""AOTInductor: a compiled package (.pt2) that loads without transformers and without a compiler."""

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from msgspec import structs
from torch._inductor import aoti_compile_and_package, aoti_load_package
from torch._inductor import config as inductor

from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.engine_table import ONEDNN, Engine
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays, example_of
from tightrope.int8.calibrate import calibration_batches, read_cache
from tightrope.int8.ranges import LearntRanges
from tightrope.model.module import DTYPES, dynamic_shapes, example_inputs, logits_module, runner
from tightrope.records.profile import OperatorTime
from tightrope.runtimes.cuda_program import graphs_of, with_graphs
from tightrope.runtimes.executed import Executed, counted, is_product
from tightrope.runtimes.operator_times import (
    DISPATCH,
    FUSED,
    Calls,
    Tensor,
    operator_time,
    per_call,
)
from tightrope.runtimes.torch_device import largest, prepare, runner_on, tuned_for, with_tf32
from tightrope.runtimes.torch_operators import times_of_calls
from tightrope.signature import Signature, of_checkpoint
from tightrope.variants import QAT

SPEC = Engine(
    precisions={"cpu": ("fp32", "bf16", "int8"), "cuda": ("fp32", "tf32", "bf16", "fp16")},
    libraries=("torch", "transformers", "torchao"),
    source="checkpoint",
    about="AOTInductor package (`.pt2`)",
    colour=("#d47b09", "#ecc900"),
    methods=("minmax", "qat"),
    reducible=("int8",),
    compiler=True,
    cuda=("autotune", "graphs"),
    instructions=ONEDNN,
    profiled=True,
    bundled=("torch",),
    mem_mb=16000,
    minutes=60,
)
FILE = "model.pt2"
# profiles name kernels by the second; without a profiler a kernel only asks whether there is one
COMPILED: dict[str, dict[str, Any]] = {
    "cpu": {"freezing": True, "cpp.enable_kernel_profile": True},
    "cuda": {"freezing": True},
}
Options = dict[str, Any]
# ...,exec,cpu,matmul,brg_matmul:avx512_core,...,src:u8:... wei:s8:...,...,64x384:384x384,0.0168
LINE = re.compile(
    r"onednn_verbose,.*?exec,cpu,(?P<kind>\w+),.*?\bsrc(?:_\w+)?:(?P<source>\w+):"
    r".*?\bdst:(?P<result>\w+):.*,(?P<sizes>[^,]+),(?P<ms>[\d.e+-]+)$"
)
TENSORS = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
TYPES = {"f32": "fp32", "bf16": "bf16", "f16": "fp16", "s8": "int8", "u8": "int8"}
WEIGHTS = re.compile(r"\bwei:(\w+):")
# graph_0_cpp_fused_add_gelu_3
KERNEL = re.compile(r"^(graph_\d+_)?cpp_fused_")
# aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu
CALL = re.compile(r"^(graph_\d+_)?aoti_torch_cpu_")
# calls of which oneDNN's log has the primitives
BY_ONEDNN = re.compile(r"linear_pointwise|conv|mkldnn|onednn")
# mb64ic384oc1536, and of a convolution mb1_ic3oc64_ih32oh32kh3...
NAMED = re.compile(r"([a-z]+)(\d+)")


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


def in_graph(program: torch.export.ExportedProgram) -> Executed:
    """Return the matrix products in the graph of `program`, by the type of their first operand.

    For packages compiled for a GPU, whose kernels bypass PyTorch's dispatcher: Inductor keeps the
    types of the graph.
    """
    found = []
    for node in program.graph.nodes:
        name = getattr(node.target, "__name__", "").partition(".")[0]
        if node.op == "call_function" and is_product(name):
            found.append((name, TENSORS[node.args[0].meta["val"].dtype]))
    return counted(found)


def logged_by_onednn(run: Callable[[], Any]) -> Executed:
    """Return the matrix products that oneDNN computes in one call of `run`, by oneDNN's log.

    For compiled packages, whose kernels bypass PyTorch's dispatcher: the logged source and weight
    types are those of the chosen kernel. Products outside oneDNN (attention in PyTorch's own
    kernel) are not in the log.
    """
    found = (line for line in map(LINE.search, onednn_log(run, 1)) if line)
    kinds = ((line["kind"], WEIGHTS.search(line[0])) for line in found)
    return counted(
        (kind, TYPES.get(weights[1], weights[1]))
        for kind, weights in kinds
        if weights and (is_product(kind) or kind == "inner_product")
    )


def onednn_log(run: Callable[[], Any], calls: int) -> list[str]:
    """Return the lines of oneDNN's log of `calls` calls of `run`, after one more that warms up."""
    run()
    verbose = torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON)
    with captured_output() as lines, verbose:
        for _ in range(calls):
            run()
    return lines


@contextmanager
def captured_output() -> Iterator[list[str]]:
    """Capture the lines that the process and its C++ libraries write to standard output."""
    lines: list[str] = []
    sys.stdout.flush()
    before = os.dup(1)
    with tempfile.TemporaryFile(mode="w+") as file:
        os.dup2(file.fileno(), 1)
        try:
            yield lines
        finally:
            sys.stdout.flush()
            ctypes.CDLL(None).fflush(None)
            os.dup2(before, 1)
            os.close(before)
            file.seek(0)
            lines += file.read().splitlines()


def operator_times(
    path: Path, run: Callable[[Arrays], Any], calls: Calls, **settings: Any
) -> list[list[OperatorTime]]:
    """Return the times of what the loaded package runs, see `times_in_package`."""
    return [times_in_package(partial(run, inputs), count) for inputs, count in calls]


def times_in_package(run: Callable[[], Any], calls: int) -> list[OperatorTime]:
    """Return the time of each oneDNN primitive and each of Inductor's kernels, the longest first.

    oneDNN's log has the sizes of its primitives. Kernels that Inductor wrote itself and other calls
    of PyTorch's operators (attention) are listed by PyTorch's profiler if the package was compiled
    with `cpp.enable_kernel_profile`, without sizes: their work is 0.
    """
    lines = onednn_log(run, calls)
    logged = per_call([time_of(match) for line in lines if (match := LINE.search(line))], calls)
    found, calls_s = [*logged], 0.0
    for one in times_of_calls(run, calls):
        if KERNEL.search(one.kind):
            found.append(structs.replace(one, group=FUSED, operations=0.0, bytes=0.0))
        elif CALL.search(one.kind) and BY_ONEDNN.search(one.kind):
            calls_s += one.seconds
        elif CALL.search(one.kind):
            found.append(structs.replace(one, operations=0.0, bytes=0.0))
    # what the calls of oneDNN take beyond its primitives: choosing them, and copies
    name = "calls of oneDNN beyond its primitives"
    rest = max(0.0, calls_s - sum(one.seconds for one in logged))
    found.append(OperatorTime(name, name, DISPATCH, "fp32", rest, 0.0, 0.0))
    return sorted(found, key=lambda one: -one.seconds)


def time_of(line: re.Match[str]) -> OperatorTime:
    """Return the time of one primitive; oneDNN counts milliseconds."""
    kind, sizes = line["kind"], line["sizes"]
    weights = WEIGHTS.search(line[0])
    types = [TYPES.get(one, one) for one in (line["source"], weights[1] if weights else "f32")]
    shapes = shapes_of(sizes)
    inputs = [Tensor(shape, one) for shape, one in zip(shapes[:-1], types, strict=True)]
    outputs = [Tensor(shapes[-1], TYPES.get(line["result"], line["result"]))]
    group = "products" if kind in ("matmul", "inner_product", "convolution") else None
    return operator_time(
        f"{kind} {sizes}", kind, float(line["ms"]) / 1e3, inputs, outputs, group=group
    )


def shapes_of(sizes: str) -> list[tuple[int, ...]]:
    """Return the shapes of source, weights and result of a primitive, by oneDNN's sizes.

    `64x384:384x384` are two factors; `mb64ic384oc384` names the axes of a linear layer or, with
    `kh` and `kw`, of a convolution.
    """
    if ":" in sizes:
        left, right = (tuple(map(int, part.split("x"))) for part in sizes.split(":")[:2])
        return [left, right, (*left[:-1], right[-1])]
    named = {name: int(value) for name, value in NAMED.findall(sizes)}
    rows, channels, results = (named.get(name, 1) for name in ("mb", "ic", "oc"))
    if "kh" not in named:
        return [(rows, channels), (channels, results), (rows, results)]
    per_group = channels // named.get("g", 1)
    return [
        (rows, channels, named["ih"], named["iw"]),
        (results, per_group, named["kh"], named["kw"]),
        (rows, results, named["oh"], named["ow"]),
    ]
