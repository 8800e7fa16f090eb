"""OpenVINO on the CPU: one static program per shape bucket; int8 by NNCF, or of a Q/DQ file.

A program is compiled when a request first needs it.
"""

import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino
from msgspec.structs import replace
from openvino import frontend, opset13

from tightrope.artifacts.failures import read_json_or_raise
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.engine_table import Engine
from tightrope.inputs.arrays import Arrays
from tightrope.int8.calibrate import calibration_batches
from tightrope.onnx.file import load_onnx
from tightrope.records.profile import OperatorTime
from tightrope.runtimes.executed import Executed, counted, is_product
from tightrope.runtimes.operator_times import Calls, Tensor, group_of, operator_time, per_call
from tightrope.runtimes.program_by_shape import padded
from tightrope.runtimes.shapes import Bucket, Buckets, in_words
from tightrope.signature import of_checkpoint, sizes_of

SPEC = Engine(
    precisions={"cpu": ("fp32", "bf16", "int8", "int8-bf16")},
    libraries=("openvino", "nncf"),
    source="onnx",
    about="int8 by NNCF",
    colour=("#c93daa", "#ca53b3"),
    methods=("nncf", "qat"),
    schemes={"cpu": "u8s8"},
    own_statistics=("nncf",),
    reducible=("int8",),
    static=True,
    # no bf16 on ARM; with only AVX2 it silently executes fp32
    instructions={"bf16": ("avx512_bf16", "amx_bf16")},
    given=("cpu",),
    profiled=True,
    bundled=("openvino",),
    mem_mb=16000,
    minutes=60,
)
FLOATS = {"f32": "fp32", "f16": "fp16", "i8": "int8"}
NO_OPERATORS = ("Const", "Input", "Output")
# all that runs in int8 of a model without attention
PRODUCTS = ("MatMul", "Convolution")
Options = dict[str, Any]
# smaller constants (of shapes, token types) are not worth a conversion
LEAST_BYTES = 1 << 16
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
COUNTERS = {"PERF_COUNT": True}
Operands = Mapping[str, tuple[list[Tensor], list[Tensor], int]]


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
    """Write the OpenVINO IR of an ONNX file or of a checkpoint's manifest into folder `target`.

    int8 with `samples` is quantized by NNCF, which collects its statistics from them, see
    `calibration_batches`; without, the ONNX file is in Q/DQ already.
    int8-bf16 copies the IR of int8, whose engine.json is `source`. With `blobs` in the options the
    compiled programs are written too.
    """
    if precision == "int8-bf16":
        copy(source, target)
    else:
        model = converted(source)
        if precision == "int8" and samples:
            batches = calibration_batches(**samples)
            model = quantized(model, batches, reduced=options["reduce_range"])
        if precision in ("bf16", "int8"):
            halve_tables(model)
        openvino.save_model(model, target / FILE, compress_to_fp16=False)
    programs = Programs(target, precision, threads, options)
    found = []
    for name in programs.names:
        program = programs.program(name)
        found.append(executed(program))
        if options["blobs"]:
            (target / blob(name)).write_bytes(program.export_model().getvalue())
    return {"format": "openvino-ir", "executed": found[0]}


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> "ByBucket":
    """Return `run(inputs) -> float32 logits [batch, classes]`; see `ByBucket`."""
    return ByBucket(Programs(path, precision, threads, options, blobs=options["blobs"]))


def copy(engine: Path, target: Path) -> None:
    """Copy the IR next to engine.json `engine` into folder `target`.

    Raises WorkFailed with the reason of the source engine where that failed.
    """
    read_json_or_raise(engine, dict[str, Any])
    read_manifest(engine, EngineManifest)
    for name in (FILE, Path(FILE).with_suffix(".bin")):
        shutil.copyfile(engine.parent / name, target / name)


def converted(source: Path) -> openvino.Model:
    """Convert an ONNX file or a checkpoint.

    The checkpoint's module has fused attention; sizes that are not free are static.
    """
    if source.suffix != ".json":
        load_onnx(source)  # verifies the checksum
        with bare_reasons():
            return openvino.convert_model(source)
    import torch

    from tightrope.model.module import example_inputs, logits_module

    input_signature = of_checkpoint(read_manifest(source, CheckpointManifest))
    module = logits_module(source, torch.float32)
    with bare_reasons():
        model = openvino.convert_model(module, example_input=example_inputs(input_signature, 2))
    free = {
        one.name: [-1 if isinstance(a, str) else a for a in one.shape]
        for one in input_signature.inputs
    }
    model.reshape({name: openvino.PartialShape(axes) for name, axes in free.items()})
    return model


def quantized(model: openvino.Model, batches: list[Arrays], *, reduced: bool) -> openvino.Model:
    """Quantize `model` to int8 with NNCF: bias correction, symmetric weights.

    SmoothQuant for transformers only, of which NNCF leaves elementwise operators in float itself,
    and embedding tables stay in float: each program would dequantize them into its own copy. Of
    other models only products are quantized: int8 between elementwise operators keeps them from
    being fused, and depthwise convolutions were slower in it (docs/results/why.md). `reduced`
    limits the weights of all products to 7 bits; else NNCF does so for first convolutions only.
    """
    import nncf
    from nncf.quantization.advanced_parameters import OverflowFix

    kinds = {operation.get_type_name() for operation in model.get_ops()}
    attends = "Softmax" in kinds
    left = kinds & {"Gather"} if attends else kinds - set(PRODUCTS)

    return nncf.quantize(
        model,
        nncf.Dataset(batches),
        subset_size=len(batches),
        model_type=nncf.ModelType.TRANSFORMER if attends else None,
        preset=nncf.QuantizationPreset.MIXED,
        ignored_scope=nncf.IgnoredScope(types=sorted(left)),
        advanced_parameters=nncf.AdvancedQuantizationParameters(
            overflow_fix=OverflowFix.ENABLE if reduced else OverflowFix.FIRST_LAYER
        ),
    )


def executed(program: openvino.CompiledModel) -> Executed:
    """Count the operators of the compiled program by class and type.

    u8 counts as int8 in matrix products; elsewhere it may be a boolean.
    """
    facts = [operation.get_rt_info() for operation in program.get_runtime_model().get_ops()]
    kinds = [(one["layerType"].astype(str), one["runtimePrecision"].astype(str)) for one in facts]
    return counted(
        (kind, "int8" if name == "u8" and is_product(kind) else FLOATS.get(name, name))
        for kind, name in kinds
        if kind not in NO_OPERATORS
    )


def halve_tables(model: openvino.Model) -> None:
    """Store the tables that rows are gathered from in float16, in `model` itself.

    For programs that compute in bf16 or int8: of a table in float32 OpenVINO keeps the file's
    pages, which are twice as many. float16 rounds a value by at most 2^-11 of it, bf16 by 2^-9. A
    table with a value beyond float16 stays as it is.
    """
    for operation in model.get_ordered_ops():
        if operation.get_type_name() != "Gather":
            continue
        table = operation.input_value(0).get_node()
        if table.get_type_name() != "Constant" or table.get_element_type() != openvino.Type.f32:
            continue
        with np.errstate(over="ignore"):
            halves = np.array(table.data, np.float16)
        if table.data.nbytes < LEAST_BYTES or not np.isfinite(halves).all():
            continue
        converted = opset13.convert(opset13.constant(halves), "f32")
        # so that constants are not folded back into one of float32
        converted.get_rt_info()["decompression"] = True
        operation.input(0).replace_source_output(converted.output(0))


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
        self.core = openvino.Core()
        # one stream with that number of threads
        self.settings: dict[str, Any] = {
            **{"INFERENCE_PRECISION_HINT": HINTS[precision], "NUM_STREAMS": 1},
            "INFERENCE_NUM_THREADS": threads,
        }
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
        if name not in self.calls:
            self.calls[name] = call_of(self.programs.program(name))
        return self.calls[name](whole)[: request[0]]


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
    path: Path, run: Any, calls: Calls, *, precision: str, threads: int, options: Options
) -> list[list[OperatorTime]]:
    """Return the operators that performance counters list, in the program of each of `calls`."""
    programs = Programs(path, precision, threads, options)
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
