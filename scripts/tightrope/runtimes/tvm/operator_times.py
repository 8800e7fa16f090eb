"""Times of the kernels of a compiled TVM program, by an instrument of its virtual machine.

TVM 0.27 has no profiler in its wheel. Its virtual machine calls an instrument before and after
each kernel, with the tensors that the kernel gets.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tightrope.records.profile import OperatorTime
from tightrope.runtimes.operator_times import Tensor, group_of, operator_time, per_call

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


def operator_times(library: Path, inputs: Sequence[np.ndarray], calls: int) -> list[OperatorTime]:
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
