"""The engine of this bundle: TVM."""

import json
import os

import tvm
from bundled.buckets import padded, shapes_of
from safetensors.numpy import load_file
from tvm import relax


def load(folder, threads):
    """Return run(inputs) -> float32 logits [batch, classes]; call it from the same thread."""
    os.environ["TVM_BIND_THREADS"] = "0"
    os.environ["TVM_NUM_THREADS"] = str(threads)
    os.environ["TVM_THREAD_POOL_SPIN_COUNT"] = "1000"  # then a worker sleeps
    tvm.get_global_func("runtime.config_threadpool")(1, threads)
    engine = json.loads((folder / "engine.json").read_text())
    buckets, names = engine["options"]["buckets"], [name for name, *_ in engine["inputs"]]
    arrays = sorted(load_file(folder / "weights.safetensors").items())
    weights, programs = [tvm.runtime.tensor(array) for _, array in arrays], {}
    for shape in shapes_of(buckets):
        library = tvm.runtime.load_module(str(folder / f"{'x'.join(map(str, shape))}.so"))
        programs[shape] = relax.VirtualMachine(library, tvm.cpu())["main"]

    def run(inputs):
        shape, whole = padded(inputs, buckets)
        logits = programs[shape](*(tvm.runtime.tensor(whole[name]) for name in names), *weights)
        return logits.numpy()[: len(inputs[names[0]])]

    return run
