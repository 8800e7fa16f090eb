"""OpenVINO on the CPU: one static program per shape bucket; int8 by NNCF, or of a Q/DQ file."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import openvino
from openvino import opset13

from tightrope.artifacts.failures import read_json_or_raise
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.engine_table import Engine
from tightrope.inputs.arrays import Arrays
from tightrope.int8.calibrate import calibration_batches
from tightrope.onnx.file import load_onnx
from tightrope.runtimes.executed import Executed, counted, is_product
from tightrope.runtimes.openvino import FILE, ByBucket, Programs, bare_reasons, blob
from tightrope.signature import of_checkpoint

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
TYPES = {"f32": "fp32", "f16": "fp16", "i8": "int8"}
NO_OPERATORS = ("Const", "Input", "Output")
# all that runs in int8 of a model without attention
PRODUCTS = ("MatMul", "Convolution")
Options = dict[str, Any]
# smaller constants (of shapes, token types) are not worth a conversion
LEAST_BYTES = 1 << 16


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


def load(path: Path, *, precision: str, device: str, threads: int, options: Options) -> ByBucket:
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
        (kind, "int8" if name == "u8" and is_product(kind) else TYPES.get(name, name))
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
