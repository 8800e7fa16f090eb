"""OpenVINO on the CPU: one static program per shape bucket; int8 by NNCF."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import openvino
from openvino import frontend

from tightrope.artifacts.failures import read_json_or_raise
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.inputs.arrays import Arrays
from tightrope.int8.calibrate import calibration_batches
from tightrope.onnx.file import load_onnx, max_sequence, signature_of
from tightrope.runtimes.buckets import Bucket, Buckets, in_words
from tightrope.runtimes.executed import Executed, counted, is_product
from tightrope.runtimes.padding import padded
from tightrope.signature import Signature, of_checkpoint, sizes_of

FILE = "model.xml"
# without a hint an fp32 model runs in bf16 on CPUs that support it
HINTS = {"fp32": "f32", "bf16": "bf16", "int8": "f32", "int8-bf16": "bf16", "given": "f32"}
TYPES = {"f32": "fp32", "f16": "fp16", "i8": "int8"}
NO_OPERATORS = ("Const", "Input", "Output")
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
    """Write the OpenVINO IR of an ONNX file or of a checkpoint's manifest into folder `target`.

    int8 needs `samples`, from which NNCF collects its statistics, see `calibration_batches`.
    int8-bf16 copies the IR of int8, whose engine.json is `source`. With `blobs` in the options the
    compiled programs are written too.
    """
    if precision == "int8-bf16":
        facts = copied(source, target)
    else:
        model, input_signature, longest = converted(source)
        if precision == "int8":
            batches = calibration_batches(**(samples or {}))
            model = quantized(model, batches, reduced=options["reduce_range"])
        openvino.save_model(model, target / FILE, compress_to_fp16=False)
        facts = {"inputs": input_signature.facts(), "max_sequence": longest}
    programs = compiled(target, precision, threads, options["buckets"])
    if options["blobs"]:
        for bucket, program in programs.items():
            (target / blob(bucket)).write_bytes(program.export_model().getvalue())
    return {
        "format": "openvino-ir",
        "executed": executed(next(iter(programs.values()))),
        **facts,
    }


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> Any:
    """Return `run(inputs) -> float32 logits [batch, classes]`.

    Without buckets for requests of any size; else `run` pads up to the nearest bucket.
    """
    programs_of = imported if options["blobs"] else compiled
    programs = programs_of(path, precision, threads, options["buckets"])
    calls = {bucket: call_of(program) for bucket, program in programs.items()}
    if options["buckets"] is None:
        return calls[None]
    buckets = Buckets(options["buckets"])

    def run(inputs: Arrays) -> Any:
        request = sizes_of(inputs)
        bucket = buckets.nearest(*request)
        return calls[bucket](padded(inputs, bucket))[: request[0]]

    return run


def call_of(program: openvino.CompiledModel) -> Any:
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


def copied(engine: Path, target: Path) -> dict[str, Any]:
    """Copy the IR next to engine.json `engine` into folder `target`; return the model's facts.

    Raises WorkFailed with the reason of the source engine where that failed.
    """
    read_json_or_raise(engine)
    built = read_manifest(engine, EngineManifest)
    for name in (FILE, Path(FILE).with_suffix(".bin")):
        shutil.copyfile(engine.parent / name, target / name)
    return {name: built[name] for name in ("inputs", "max_sequence")}


def converted(source: Path) -> tuple[openvino.Model, Signature, int | None]:
    """Convert an ONNX file or a checkpoint; return model, signature and maximum tokens."""
    if source.suffix == ".json":
        manifest = read_manifest(source, CheckpointManifest)
        input_signature = of_checkpoint(manifest)
        return (
            converted_from_pytorch(source, input_signature),
            input_signature,
            manifest["max_sequence"],
        )
    file = load_onnx(source)  # verifies the checksum
    with bare_reasons():
        return openvino.convert_model(source), signature_of(file), max_sequence(file)


def converted_from_pytorch(checkpoint: Path, input_signature: Signature) -> openvino.Model:
    """Convert the checkpoint's module with fused attention; sizes that are not free are static."""
    import torch

    from tightrope.model.module import example_inputs, logits_module

    module = logits_module(checkpoint, torch.float32)
    with bare_reasons():
        model = openvino.convert_model(module, example_input=example_inputs(input_signature, 2))
    free = {
        one.name: [-1 if isinstance(a, str) else a for a in one.shape]
        for one in input_signature.inputs
    }
    model.reshape({name: openvino.PartialShape(axes) for name, axes in free.items()})
    return model


def compiled(
    path: Path, precision: str, threads: int, buckets: dict[str, list[int]] | None
) -> dict[Bucket | None, openvino.CompiledModel]:
    """Compile the IR in folder `path` for each bucket, or as None for dynamic shapes.

    Programs share weights that they use unchanged from the file.
    """
    core, settings = openvino.Core(), settings_of(precision, threads)
    model = core.read_model(path / FILE)
    with bare_reasons():
        if buckets is None:
            return {None: core.compile_model(model, "CPU", settings)}
        return {
            bucket: core.compile_model(static(model, bucket), "CPU", settings)
            for bucket in Buckets(buckets).all()
        }


def static(model: openvino.Model, bucket: Bucket) -> openvino.Model:
    """Return a copy of the model with the static shape of a bucket."""
    copy = model.clone()
    rest = {port.any_name: list(port.partial_shape)[len(bucket) :] for port in copy.inputs}
    copy.reshape({name: openvino.PartialShape([*bucket, *axes]) for name, axes in rest.items()})
    return copy


def imported(
    path: Path, precision: str, threads: int, buckets: dict[str, list[int]] | None
) -> dict[Bucket | None, openvino.CompiledModel]:
    """Import the programs of `compiled` from their blobs in folder `path`.

    A blob does not store the precision hint, so it is set again.
    """
    core, settings = openvino.Core(), settings_of(precision, threads)
    names = [None] if buckets is None else Buckets(buckets).all()
    return {
        name: core.import_model((path / blob(name)).read_bytes(), "CPU", settings) for name in names
    }


def settings_of(precision: str, threads: int) -> dict[str, Any]:
    """Return the compile settings: one stream with the given number of threads."""
    return {
        "INFERENCE_PRECISION_HINT": HINTS[precision],
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
    }


def blob(bucket: Bucket | None) -> str:
    """Return the file name of a compiled program."""
    return f"{in_words(bucket) if bucket else 'dynamic'}.blob"


@contextmanager
def bare_reasons() -> Iterator[None]:
    """Reduce OpenVINO errors to their reason, without the preceding source locations."""
    try:
        yield
    except (RuntimeError, frontend.OpConversionFailure, frontend.GeneralFailure) as error:
        places = ("Exception from ", "Check '")
        reasons = [line for line in str(error).splitlines() if line and not line.startswith(places)]
        raise RuntimeError(" ".join(reasons) or str(error)) from error


def quantized(model: openvino.Model, batches: list[Arrays], *, reduced: bool) -> openvino.Model:
    """Quantize `model` to int8 with NNCF: bias correction, symmetric weights, SmoothQuant.

    SmoothQuant for transformers only. Embedding tables stay in float: each program would
    dequantize them into its own copy. `reduced` limits the weights of all products to 7 bits; else
    NNCF does so for first convolutions only.
    """
    import nncf
    from nncf.quantization.advanced_parameters import OverflowFix

    attends = any(operation.get_type_name() == "Softmax" for operation in model.get_ops())

    return nncf.quantize(
        model,
        nncf.Dataset(batches),
        subset_size=len(batches),
        model_type=nncf.ModelType.TRANSFORMER if attends else None,
        preset=nncf.QuantizationPreset.MIXED,
        ignored_scope=nncf.IgnoredScope(types=["Gather"], validate=False),
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
        (kind, "int8" if name == "u8" and is_product(kind) else TYPES.get(name, name))
        for kind, name in kinds
        if kind not in NO_OPERATORS
    )
