"""Programs of an OpenVINO IR: one per shape bucket, compiled when a request first needs it."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino
from msgspec.structs import replace
from openvino import frontend

from tightrope.inputs.arrays import Arrays
from tightrope.records.profile import OperatorTime
from tightrope.runtimes.buckets import Bucket, Buckets, in_words
from tightrope.runtimes.operator_times import Calls, Tensor, group_of, operator_time, per_call
from tightrope.runtimes.program_by_shape import padded
from tightrope.signature import sizes_of

FILE = "model.xml"
# without a hint an fp32 model runs in bf16 on CPUs that support it
HINTS = {"fp32": "f32", "bf16": "bf16", "int8": "f32", "int8-bf16": "bf16", "given": "f32"}
TYPES = {
    "f32": "fp32",
    "f16": "fp16",
    "bf16": "bf16",
    "i8": "int8",
    "u8": "int8",
    "i32": "int32",
    "i64": "int64",
    "boolean": "bool",
}
Options = Mapping[str, Any]
COUNTERS = {"PERF_COUNT": True}
Operands = Mapping[str, tuple[list[Tensor], list[Tensor], int]]


class Programs:
    """Programs of the IR in `folder` for the `buckets` of the engine's options.

    Without buckets there is one, for requests of any size, whose name is None. At most
    `static_programs` buckets get a program, and that one serves the others. With `blobs` the
    programs are imported from the files `blob(name)`, else they are compiled.
    """

    def __init__(
        self, folder: Path, precision: str, threads: int, options: Options, *, blobs: bool = False
    ) -> None:
        most, buckets = options.get("static_programs"), options.get("buckets")
        self.folder, self.blobs = folder, blobs
        self.limit = math.inf if most is None else most
        self.core, self.settings = openvino.Core(), settings_of(precision, threads)
        self.buckets = None if buckets is None else Buckets(buckets)
        self.chosen: set[Bucket] = set()
        # programs share what they use unchanged from its files
        self.model = None if blobs else self.core.read_model(folder / FILE)

    @property
    def names(self) -> list[Bucket | None]:
        """Return every bucket, the smallest first, and None where requests may need that."""
        static = [] if self.buckets is None else self.buckets.all()
        return [*static, None] if not static or len(static) > self.limit else [*static]

    def serving(self, *request: int) -> Bucket | None:
        """Return the name of the program for a request of these sizes.

        That of its bucket, or None where other buckets had requests before and may be no more.
        Raises ValueError for a request beyond the buckets.
        """
        if self.buckets is None:
            return None
        bucket = self.buckets.nearest(*request)
        if bucket not in self.chosen and len(self.chosen) >= self.limit:
            return None
        self.chosen.add(bucket)
        return bucket

    def program(self, name: Bucket | None) -> openvino.CompiledModel:
        """Compile or import a program; raises RuntimeError with OpenVINO's reason.

        A blob does not store the precision hint, so it is set again.
        """
        if self.blobs:
            content = (self.folder / blob(name)).read_bytes()
            return self.core.import_model(content, "CPU", self.settings)
        with bare_reasons():
            model = self.model if name is None else static(self.model, name)
            return self.core.compile_model(model, "CPU", self.settings)


class ByBucket:
    """Callable `run(inputs) -> float32 logits [batch, classes]` over `programs`.

    A request is padded up to the nearest bucket. The first request of a bucket waits until its
    program is compiled: `calls` holds those that are. Where there are as many as may be, the
    dynamic program answers, without padding.
    """

    def __init__(self, programs: Programs) -> None:
        self.programs = programs
        self.calls: dict[Bucket | None, Callable[[Arrays], Any]] = {}

    def __call__(self, inputs: Arrays) -> Any:
        """Return logits of `inputs`; raise ValueError for a request beyond the buckets."""
        request = sizes_of(inputs)
        name = self.programs.serving(*request)
        whole = inputs if name is None else padded(inputs, name)
        return self.call(name)(whole)[: request[0]]

    def call(self, name: Bucket | None) -> Callable[[Arrays], Any]:
        """Return the call of a program, which is compiled at the first request of it."""
        if name not in self.calls:
            self.calls[name] = call_of(self.programs.program(name))
        return self.calls[name]


def call_of(program: openvino.CompiledModel) -> Callable[[Arrays], Any]:
    """Return a function from the inputs of one program to its logits.

    Tensors share the memory of the arrays: passing a dictionary to `infer` costs 0.1 ms more.
    """
    request = program.create_infer_request()
    ports = {port.any_name: port for port in program.inputs}

    def call(inputs: Arrays) -> Any:
        for name, array in inputs.items():
            request.set_tensor(ports[name], openvino.Tensor(array, shared_memory=True))
        request.infer(share_outputs=True)
        return np.array(request.get_output_tensor(0).data)

    return call


def static(model: openvino.Model, bucket: Bucket) -> openvino.Model:
    """Return a copy of the model with the static shape of a bucket."""
    copy = model.clone()
    rest = {port.any_name: list(port.partial_shape)[len(bucket) :] for port in copy.inputs}
    copy.reshape({name: openvino.PartialShape([*bucket, *axes]) for name, axes in rest.items()})
    return copy


def settings_of(precision: str, threads: int) -> dict[str, Any]:
    """Return the compile settings: one stream with the given number of threads."""
    return {
        "INFERENCE_PRECISION_HINT": HINTS[precision],
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
    }


def blob(name: Bucket | None) -> str:
    """Return the file name of a compiled program."""
    return f"{in_words(name) if name else 'dynamic'}.blob"


@contextmanager
def bare_reasons() -> Iterator[None]:
    """Reduce OpenVINO errors to their reason, without the preceding source locations."""
    try:
        yield
    except (RuntimeError, frontend.OpConversionFailure, frontend.GeneralFailure) as error:
        places = ("Exception from ", "Check '")
        reasons = [line for line in str(error).splitlines() if line and not line.startswith(places)]
        raise RuntimeError(" ".join(reasons) or str(error)) from error


def operator_times(
    folder: Path, precision: str, threads: int, options: Options, calls: Calls
) -> list[list[OperatorTime]]:
    """Return the operators that performance counters list, in the program of each of `calls`."""
    programs = Programs(folder, precision, threads, options)
    programs.settings |= COUNTERS
    program = cache(programs.program)
    found = []
    for inputs, count in calls:
        name = programs.serving(*sizes_of(inputs))
        whole = inputs if name is None else padded(inputs, name)
        found.append(times_in(program(name), whole, count))
    return found


def times_in(program: openvino.CompiledModel, inputs: Arrays, calls: int) -> list[OperatorTime]:
    """Return the time of each operator per call of `inputs`, the longest first.

    `program` was compiled with `COUNTERS`; it is called once to warm up and then `calls` times.
    """
    request = program.create_infer_request()
    operands = operands_of(program)
    # an operator is read once: that takes longer than many an operator
    known = cache(partial(operator_of, operands))
    request.infer(inputs)
    found = []
    for _ in range(calls):
        request.infer(inputs)
        for one in request.profiling_info:
            if one.status == openvino.ProfilingInfo.Status.EXECUTED:
                seconds = one.real_time.total_seconds()
                found.append(replace(known(one.node_name, one.node_type), seconds=seconds))
    return per_call(found, calls)


def operands_of(program: openvino.CompiledModel) -> Operands:
    """Return inputs, outputs and the number of fused Softmax operators of each operator."""
    found = {}
    for node in program.get_runtime_model().get_ops():
        facts = node.get_rt_info()
        inputs, outputs = map(tensors, (node.inputs(), node.outputs()))
        layers = facts["originalLayersNames"].astype(str).casefold()
        found[node.get_friendly_name()] = inputs, outputs, layers.count("softmax")
    return found


def tensors(ports: Sequence[Any]) -> list[Tensor]:
    """Return shapes and types of the inputs or outputs of an operator."""
    kinds = [one.get_element_type().get_type_name() for one in ports]
    return [
        Tensor(tuple(one.get_shape()), TYPES.get(kind, kind))
        for one, kind in zip(ports, kinds, strict=True)
    ]


def operator_of(operands: Operands, name: str, kind: str) -> OperatorTime:
    """Return an operator without its time; one that a Softmax was fused into is attention."""
    inputs, outputs, softmaxes = operands.get(name, ([], [], 0))
    group = group_of(kind, products=2 if softmaxes and kind == "Subgraph" else 1)
    return operator_time(name, kind, 0.0, inputs, outputs, group=group)
