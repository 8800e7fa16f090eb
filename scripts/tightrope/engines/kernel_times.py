"""Times of the kernels that any engine runs on a GPU, inside CUDA graphs too. Not run on a GPU yet.

CUPTI, under PyTorch's profiler, records each kernel of the process, whichever library launches it.
What a kernel computes shows in its name alone: its sizes, and so its work, are unknown.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from msgspec.structs import replace

from tightrope.engines.tensorrt_inspection import OPERAND_TYPES, OPERANDS, TYPE, TYPES
from tightrope.errors import WorkFailed
from tightrope.records.profile import OperatorTime
from tightrope.runtimes.operator_times import ATTENTION, FUSED, PRODUCTS, per_call
from tightrope.runtimes.torch_operators import MICRO
from tightrope.runtimes.torch_operators import time_of as operator_of

COPIES = "copies to and from the GPU"
# group -> pattern in the name of a kernel, the first that fits; the rest are fused loops
GROUPS = {
    COPIES: re.compile(r"^Mem(?:cpy|set)"),
    ATTENTION: re.compile(r"mha|attention|flash_fwd"),
    PRODUCTS: re.compile(
        r"gemm|gemv|nvjet|splitK|_(?:fprop|dgrad|conv)|triton_tem|__myl_\w*?Fc(?![a-z])"
    ),
}
# kernels on several streams add up to more than the time between two events on one
MOST, LEAST_OF_GRAPH = 1.1, 0.5
# name and seconds of a kernel
Kernel = tuple[str, float]


def kernel_times(
    run: Any, inputs: Any, calls: int, *, graph: bool, eager: bool
) -> list[OperatorTime]:
    """Return the time of each kernel per call of `run(inputs)`, the longest first.

    `run` is a loaded engine with `device_seconds`; `graph` says whether it replays a CUDA graph. Of
    `eager` PyTorch, the times are those of its operators, with their shapes. Raises WorkFailed as
    `times_of` does.
    """
    events = profiled(lambda: run(inputs), calls)
    kernels = kernels_of(events)
    seconds = run.device_seconds(inputs, calls) if kernels else [1.0]
    found = times_of(kernels, calls, sum(seconds) / len(seconds), graph=graph)
    return per_call(operators_of(events), calls) if eager else found


def profiled(run: Callable[[], Any], calls: int) -> list[Any]:
    """Return the profiler's events of `calls` calls, without its first step, which loses some."""
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)
    with torch.profiler.profile(schedule=schedule, record_shapes=True) as profile:
        for _ in range(2):
            for _ in range(calls):
                run()
            profile.step()
    return list(profile.events())


def kernels_of(events: Iterable[Any]) -> list[Kernel]:
    """Return the kernels among the events of a profiler; on the GPU its steps are events too."""
    on_gpu = (event for event in events if event.device_type.name == "CUDA")
    on_gpu = (event for event in on_gpu if not event.is_user_annotation)
    return [(event.name, MICRO * event.self_device_time_total) for event in on_gpu]


def operators_of(events: Iterable[Any]) -> Iterator[OperatorTime]:
    """Yield the operators that launched kernels, with the seconds of these."""
    for event in events:
        if event.is_user_annotation or event.device_type.name != "CPU":
            continue
        if event.self_device_time_total:
            yield replace(operator_of(event), seconds=MICRO * event.self_device_time_total)


def times_of(
    kernels: Iterable[Kernel], calls: int, device_s: float, *, graph: bool
) -> list[OperatorTime]:
    """Return the time of each kernel per call of `device_s` seconds, the longest first.

    Raises WorkFailed where kernels are missing: none at all, one that does not run equally often in
    each call, or a sum far from `device_s`. Only a CUDA graph leaves no gaps between kernels.
    """
    counts = Counter(name for name, _ in kernels)
    found = per_call((time_of(*kernel) for kernel in kernels), calls)
    busy = sum(one.seconds for one in found if one.group != COPIES)
    lost = next((name for name, count in counts.items() if count % calls), None)
    if not busy:
        reason = "recorded no kernels"
    elif lost is not None:
        reason = f"lost kernels: {counts[lost]} of {lost[:60]} in {calls} calls"
    elif busy > MOST * device_s or (graph and busy < LEAST_OF_GRAPH * device_s):
        reason = f"says {1e3 * busy:.3g} ms of kernels in a call of {1e3 * device_s:.3g} ms"
    else:
        return found
    raise WorkFailed(f"PyTorch's profiler {reason}", transient=False)


def time_of(name: str, seconds: float) -> OperatorTime:
    """Return the time of a kernel, with its group and type by its name."""
    group = next((group for group, words in GROUPS.items() if words.search(name)), FUSED)
    return OperatorTime(name, group, group, type_in(name), seconds, 0.0, 0.0)


def type_in(name: str) -> str:
    """Return the type that a kernel's name tells, `unknown` without one."""
    if operands := OPERANDS.search(name):
        return OPERAND_TYPES[operands[1]]
    if "sgemm" in name:
        return "fp32"
    match = TYPE.search(name.replace("_", " "))
    return TYPES[match[1].casefold()] if match else "unknown"
