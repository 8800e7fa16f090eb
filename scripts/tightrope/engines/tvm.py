"""TVM on the CPU: one static program per shape bucket."""

import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from safetensors.numpy import load_file, save_file
from tvm import relax
from tvm.target import Target

from tightrope.artifacts.manifest import open_manifest, read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.engine_table import Engine
from tightrope.inputs.arrays import Arrays
from tightrope.records.profile import OperatorTime
from tightrope.runtimes.operator_times import Calls, Tensor, group_of, operator_time, per_call
from tightrope.runtimes.program_by_shape import padded
from tightrope.runtimes.shapes import Buckets, in_words
from tightrope.signature import of_checkpoint, sizes_of

SPEC = Engine(
    precisions={"cpu": ("fp32",)},
    libraries=("apache-tvm", "torch", "transformers"),
    source="checkpoint",
    about="texts only; matrix products in register tiles",
    colour=("#482f02", "#946b17"),
    static=True,
    compiler=True,
    profiled=True,
    bundled=("apache-tvm", "safetensors"),
    mem_mb=16000,
    minutes=240,
)
Options = dict[str, Any]
WEIGHTS = "weights.safetensors"
# spins of a worker before it sleeps while it waits for the next loop; TVM's default is 300000
SPINS = 1000
TYPES = {
    **{"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"},
    **{"int8": "int8", "uint8": "int8", "int32": "int32", "int64": "int64", "bool": "bool"},
}
# what the virtual machine does itself: memory, views, checks of shapes
BUILT_IN = "vm.builtin."
# a kernel like an earlier one, for other shapes: fused_matmul2_add1
NUMBER = re.compile(r"\d+(?=_|$)")
# TVM's word -> a word by which `group_of` knows such an operator
WORDS = {"take": "gather", "broadcast_to": "expand"}


def build(
    source: Path, target: Path, *, precision: str, device: str, threads: int, options: Options
) -> dict[str, Any]:
    """Write one library per bucket, and the shared weights, into folder `target`.

    `source` is the manifest of a checkpoint of a text model.
    """
    from tightrope.engines.tvm_programs import imported, lowered, products, scheduled

    set_threads(threads)
    # this machine's CPU with the features that the OS enables
    cpu = tvm.get_global_func("tvm.codegen.llvm.GetHostCPUName")()
    features = tvm.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()
    switches = sorted(f"{'+' if there else '-'}{name}" for name, there in features.items())
    host = Target({"kind": "llvm", "mcpu": cpu, "mattr": switches, "num-cores": threads})
    input_signature = of_checkpoint(read_manifest(source, CheckpointManifest))
    modules, weights = imported(source, input_signature, Buckets(options["buckets"]))
    save_file(weights, target / WEIGHTS)
    with host:
        for bucket, module in modules.items():
            loops = lowered(module)
            # before scheduling, which changes the loops in place; the last bucket is the largest
            calls = products(loops)
            library = tvm.compile(scheduled(loops), host)
            library.export_library(target / f"{in_words(bucket)}.so")
    names = {"float32": "fp32"}
    types = [names.get(product.dtype, product.dtype) for product in calls]
    return {
        "format": "tvm-library",
        # the matrix products per call of the program, by type
        "executed": {"matmul": {name: types.count(name) for name in sorted({*types})}},
    }


def load(
    path: Path, *, precision: str, device: str, threads: int, options: Options
) -> Callable[[Arrays], Any]:
    """Return `run(inputs) -> float32 logits [batch, classes]`, padded up to the nearest bucket.

    `run` raises ValueError beyond the largest bucket, and must be called from the thread that
    loaded it: TVM has a separate thread pool per calling thread.
    """
    set_threads(threads)
    shapes = Buckets(options["buckets"])
    weights = [tvm.runtime.tensor(array) for _, array in sorted(load_file(path / WEIGHTS).items())]
    programs = {bucket: program(path / f"{in_words(bucket)}.so") for bucket in shapes.all()}
    names = [name for name, *_ in open_manifest(path / "engine.json", EngineManifest)["inputs"]]

    def run(inputs: Arrays) -> Any:
        request = sizes_of(inputs)
        bucket = shapes.nearest(*request)
        whole = padded(inputs, bucket)
        tensors = [tvm.runtime.tensor(whole[name]) for name in names]
        return programs[bucket](*tensors, *weights).numpy()[: request[0]]

    return run


def operator_times(
    path: Path, run: Any, calls: Calls, *, precision: str, threads: int, options: Options
) -> list[list[OperatorTime]]:
    """Return the kernels that TVM's virtual machine calls, in the bucket of each of `calls`."""
    set_threads(threads)
    shapes, found = Buckets(options["buckets"]), []
    weights = [array for _, array in sorted(load_file(path / WEIGHTS).items())]
    names = [name for name, *_ in open_manifest(path / "engine.json", EngineManifest)["inputs"]]
    for inputs, count in calls:
        bucket = shapes.nearest(*sizes_of(inputs))
        whole = padded(inputs, bucket)
        tensors = [*(whole[name] for name in names), *weights]
        found.append(kernel_times(path / f"{in_words(bucket)}.so", tensors, count))
    return found


def program(library: Path) -> Callable[..., tvm.runtime.Tensor]:
    """Load the function of one bucket: inputs, weights -> logits."""
    return relax.VirtualMachine(tvm.runtime.load_module(library), tvm.cpu())["main"]


def set_threads(threads: int) -> None:
    """Set the number of TVM threads for the calling thread, on the processors it may use."""
    # else TVM pins threads to processors 0, 1, ... regardless of the affinity of this process
    os.environ["TVM_BIND_THREADS"] = "0"
    os.environ["TVM_NUM_THREADS"] = str(threads)
    os.environ["TVM_THREAD_POOL_SPIN_COUNT"] = str(SPINS)
    tvm.get_global_func("runtime.config_threadpool")(1, threads)
    started = tvm.runtime.num_threads()
    if started != threads:
        raise RuntimeError(
            f"{threads} threads for TVM: it runs {started}, set when they were first started; "
            "load one number of threads in a process"
        )


def kernel_times(library: Path, inputs: Sequence[np.ndarray], calls: int) -> list[OperatorTime]:
    """Return the time of each kernel per call of the program in `library`, the longest first.

    `inputs` are all that it takes, weights included. It is called once to warm up and then `calls`
    times, in the thread whose TVM threads are set. The instrument adds some microseconds to each
    kernel.
    """
    machine = relax.VirtualMachine(tvm.runtime.load_module(library), tvm.cpu())
    tensors = [tvm.runtime.tensor(array) for array in inputs]
    machine["main"](*tensors)
    stopwatch = Stopwatch()
    machine.set_instrument(stopwatch)
    for _ in range(calls):
        machine["main"](*tensors)
    return per_call(stopwatch.times, calls)


class Stopwatch:
    """Instrument of a virtual machine; `times` has each kernel that was called."""

    def __init__(self) -> None:
        self.times: list[OperatorTime] = []
        self.began = 0.0

    def __call__(self, kernel: Any, name: str, before: bool, result: Any, *operands: Any) -> None:
        """Take the time before and after a kernel."""
        now = time.perf_counter()
        if not before and not name.startswith(BUILT_IN):
            self.times.append(time_of(name, now - self.began, operands))
        self.began = time.perf_counter()


def time_of(name: str, seconds: float, operands: Sequence[Any]) -> OperatorTime:
    """Return the time of one kernel, which writes its result into its last operand."""
    *inputs, output = [
        Tensor(tuple(int(size) for size in one.shape), TYPES.get(str(one.dtype), str(one.dtype)))
        for one in operands
        if isinstance(one, tvm.runtime.Tensor)
    ]
    kind = NUMBER.sub("", name)
    known = kind
    for word, common in WORDS.items():
        known = known.replace(word, common)
    return operator_time(name, kind, seconds, inputs, [output], group=group_of(known))
