"""Torch-TensorRT: the exported model with its operators in TensorRT engines, one file.

Names and arguments are those of Torch-TensorRT 2.13, which builds strongly typed engines only: the
weights' type decides every type. Operators that it cannot convert run in PyTorch between engines.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging import getLogger
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from tightrope.artifacts.manifest import open_manifest, read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.model.module import DTYPES, logits_module
from tightrope.runtimes.cuda_program import CudaProgram, Program, queue_on_gpu
from tightrope.runtimes.executed import Executed, added, as_tf32
from tightrope.runtimes.program_by_shape import ByShape, Make
from tightrope.runtimes.tensorrt.contexts import layer_information, tuned_shapes
from tightrope.runtimes.tensorrt.inspection import executed
from tightrope.runtimes.tensorrt.logged_errors import Errors, failed
from tightrope.runtimes.tensorrt.profiles import Profile, choose, covering
from tightrope.runtimes.tensorrt.version import require_same
from tightrope.runtimes.torch.device import prepare
from tightrope.runtimes.torch.operators import in_graph
from tightrope.runtimes.torch.ranges import Inputs, axes_within, example_within, without_gathers
from tightrope.signature import of_checkpoint, sizes_of

try:
    import torch_tensorrt
    from torch_tensorrt.dynamo.runtime import TorchTensorRTModule
    from torch_tensorrt.runtime import set_cudagraphs_mode
except Exception as error:  # a plain Exception where it cannot load TensorRT
    raise ImportError(str(error) or repr(error)) from error

import tensorrt as trt

FILE, LAYERS = "model.pt2", "layers-{}.json"
# logger of what TensorRT reports while Torch-TensorRT builds an engine
LOGGER = "torch_tensorrt [TensorRT Conversion Context]"
# an engine runs only with its own TensorRT on its own kind of GPU
BOUND = {"version_compatible": False, "hardware_compatibility": "none"}
Options = dict[str, Any]


def build(
    source: Path, target: Path, *, precision: str, device: str, threads: int, options: Options
) -> dict[str, Any]:
    """Write the exported program with its engines, and their layers, into folder `target`.

    `engines` is the number of engines, `in_pytorch` the names of the operators that run outside of
    them. Raises WorkFailed where Torch-TensorRT converts nothing, or with TensorRT's own reason.
    """
    prepare(device, precision, threads)
    manifest = read_manifest(source, CheckpointManifest)
    input_signature = of_checkpoint(manifest)
    module = without_gathers(logits_module(source, DTYPES[precision])).to(device)
    # Torch-TensorRT takes the range from the axes, and tunes for the shape of the example
    axes = axes_within(input_signature, profile_of(options))
    example = example_within(input_signature, profile_of(options), device)
    with torch.no_grad():
        program = torch.export.export(module, (), kwargs=example, dynamic_shapes=axes)
        compiled = compile_program(program, example, precision, options)
        torch_tensorrt.save(compiled, str(target / FILE), kwarg_inputs=example, dynamic_shapes=axes)
    engines = [one for one in compiled.children() if isinstance(one, TorchTensorRTModule)]
    if not engines:
        raise WorkFailed("Torch-TensorRT converted no part of the model", transient=False)
    counts = [layers_of(one, target / LAYERS.format(n)) for n, one in enumerate(engines)]
    outside = [one for one in compiled.children() if isinstance(one, torch.fx.GraphModule)]
    ran = added([*counts, *map(in_graph, outside)])
    return {
        "format": "torch-tensorrt",
        # neither the inspector nor the graph tells which fp32 products used TF32
        "executed": as_tf32(ran) if precision == "tf32" else ran,
        "engines": len(engines),
        "in_pytorch": sorted({name for one in outside for name in called(one)}),
        "built_on": place(),
        "inputs": input_signature.facts(),
        "max_sequence": manifest["max_sequence"],
    }


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """Return `run(inputs) -> float32 logits [batch, classes]` for shapes within the profile.

    With `graphs` Torch-TensorRT replays each engine as a CUDA graph, and records it again when the
    shape changes. Raises WorkFailed for an engine of another TensorRT or GPU.
    """
    prepare(device, precision, threads)
    manifest = open_manifest(path / "engine.json", EngineManifest)
    require_same(manifest["built_on"], place(), BOUND)
    set_cudagraphs_mode(options["graphs"])
    profile = profile_of(options)

    def on_new_queue() -> Make:
        # loaded anew for each stream: an engine of Torch-TensorRT has one context
        exported = torch_tensorrt.load(str(path / FILE))
        # `choose` checks the range of a shape once, the exporter's guards would at each call
        program = one_output(exported.module(check_guards=False))
        queue = queue_on_gpu(graphs=False)

        def make(inputs: Arrays) -> CudaProgram:
            choose([profile], *sizes_of(inputs))
            return CudaProgram(program, inputs, queue)

        return make

    return ByShape(on_new_queue, buckets=None)


def profile_of(options: Options) -> Profile:
    """Return the optimization profile: Torch-TensorRT 2.13 builds an engine with one."""
    return covering([Profile.of(one) for one in options["profiles"]])


def compile_program(
    program: torch.export.ExportedProgram, example: Inputs, precision: str, options: Options
) -> torch.fx.GraphModule:
    """Return the program with the parts that TensorRT can run as engines, tuned for `example`."""
    with (
        TemporaryDirectory() as scratch,
        with_reasons(),
        # only within it are engines built with the details of their layers
        torch_tensorrt.dynamo.Debugger(
            log_level="warning", engine_builder_monitor=False, logging_dir=scratch
        ),
    ):
        return torch_tensorrt.dynamo.compile(
            program,
            arg_inputs=(),
            kwarg_inputs=example,
            disable_tf32=precision != "tf32",
            optimization_level=options["optimization_level"],
            # the default replaces each mask of attention by a causal one, as of a decoder
            attn_bias_is_causal=False,
            timing_cache_path=str(Path(scratch, "timing.cache")),
        )


@contextmanager
def with_reasons() -> Iterator[None]:
    """Turn an AssertionError of Torch-TensorRT in this context into the first error logged."""
    errors = Errors()
    getLogger(LOGGER).addHandler(errors)
    try:
        yield
    except AssertionError as error:
        raise failed(errors, error) from error
    finally:
        getLogger(LOGGER).removeHandler(errors)


def layers_of(module: Any, file: Path) -> Executed:
    """Write the layers of an engine to a file, and count them."""
    runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
    engine = runtime.deserialize_cuda_engine(module.serialized_engine)
    information = layer_information(engine, 0, tuned_shapes(engine, 0))
    file.write_text(information)
    return executed(information)


def called(module: torch.fx.GraphModule) -> Iterator[str]:
    """Yield the name of each operator that a graph calls, as `aten.add.Tensor`."""
    for node in module.graph.nodes:
        if node.op == "call_function":
            yield str(node.target)


def one_output(module: Callable[..., Any]) -> Program:
    """Return `module` as a program: a compiled module returns its one output within a tuple."""

    def call(**tensors: torch.Tensor) -> torch.Tensor:
        outputs = module(**tensors)
        logits: torch.Tensor = outputs if isinstance(outputs, torch.Tensor) else outputs[0]
        return logits

    return call


def place() -> dict[str, str]:
    """Return the TensorRT version and the GPU that the engines are valid for."""
    return {"tensorrt": trt.__version__, "gpu": torch.cuda.get_device_name()}
