"""TVM on the CPU: a static program for each bucket of shapes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tvm
from safetensors.numpy import load_file, save_file
from tvm import relax
from tvm.target import Target

from tightrope.artifacts.files import read_json
from tightrope.artifacts.manifest import read_manifest
from tightrope.inputs.arrays import Arrays
from tightrope.runtimes.buckets import Buckets, in_words
from tightrope.runtimes.padding import padded
from tightrope.signature import of_checkpoint, sizes_of

WEIGHTS = "weights.safetensors"
# a worker spins so often for the next loop of a call, 300000 times unless told, and then sleeps
SPINS = 1000


def build(
    source: Path,
    target: Path,
    *,
    precision: str,
    device: str,
    threads: int,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Write a library for each bucket, and once the weights, into folder `target`.

    `source` is the manifest of a checkpoint. Matrix products are tuned for `tune_seconds` in
    all; the model's folder work/tvm keeps what was found for later builds. 0 takes what is
    there, or a rule.
    """
    from tightrope.runtimes.tvm.programs import imported, lowered, products, scheduled
    from tightrope.runtimes.tvm.tuning import tuned

    set_threads(threads)
    host = host_target(threads)
    manifest = read_manifest(source)
    taken = of_checkpoint(manifest)
    modules, weights = imported(source, taken, Buckets(options["buckets"]))
    save_file(weights, target / WEIGHTS)
    with host:
        modules = {bucket: lowered(module) for bucket, module in modules.items()}
        calls = {bucket: products(module) for bucket, module in modules.items()}
        work = target.parent.parent / "work" / "tvm"
        tiles, tuning = tuned(calls.values(), host, seconds=options["tune_seconds"], work=work)
        for bucket, module in modules.items():
            library = tvm.compile(scheduled(module, tiles), host)
            library.export_library(target / f"{in_words(bucket)}.so")
    return {
        "format": "tvm-library",
        "executed": executed(calls[max(calls)]),
        "tuning": tuning,
        "inputs": taken.facts(),
        "max_sequence": manifest["max_sequence"],
    }


def load(
    path: Path, *, precision: str, device: str, threads: int, options: dict[str, Any]
) -> Callable[[Arrays], Any]:
    """`run(inputs) -> float32 logits [batch, classes]`, padded up to the nearest bucket.

    `run` raises ValueError beyond the largest, and must be called by the thread that loaded it:
    TVM has threads of its own for each.
    """
    set_threads(threads)
    shapes = Buckets(options["buckets"])
    weights = [tvm.runtime.tensor(array) for _, array in sorted(load_file(path / WEIGHTS).items())]
    programs = {bucket: program(path / f"{in_words(bucket)}.so") for bucket in shapes.all()}
    names = [name for name, *_ in read_json(path / "engine.json")["inputs"]]

    def run(inputs: Arrays) -> Any:
        request = sizes_of(inputs)
        bucket = shapes.nearest(*request)
        whole = padded(inputs, bucket)
        tensors = [tvm.runtime.tensor(whole[name]) for name in names]
        return programs[bucket](*tensors, *weights).numpy()[: request[0]]

    return run


def program(library: Path) -> Callable[..., tvm.runtime.Tensor]:
    """The function of one bucket: inputs, weights -> logits."""
    return relax.VirtualMachine(tvm.runtime.load_module(library), tvm.cpu())["main"]


def set_threads(threads: int) -> None:
    """So many threads for the loops that this thread runs, on the processors it may use."""
    # else TVM pins them to processors 0, 1, ... whichever this process may use
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


def host_target(threads: int) -> Target:
    """LLVM for the processor of this machine and what of it the operating system lets through."""
    name = tvm.get_global_func("tvm.codegen.llvm.GetHostCPUName")()
    features = tvm.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()
    switches = sorted(
        f"{'+' if present else '-'}{feature}" for feature, present in features.items()
    )
    return Target({"kind": "llvm", "mcpu": name, "mattr": switches, "num-cores": threads})


def executed(calls: list[Any]) -> dict[str, dict[str, int]]:
    """How many matrix products a call of the program makes, by type."""
    names = {"float32": "fp32"}
    types = [names.get(product.dtype, product.dtype) for product in calls]
    return {"matmul": {name: types.count(name) for name in sorted(set(types))}}
