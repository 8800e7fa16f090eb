"""A model repository of Triton Inference Server, from an engine and its measurements.

Keys of config.pbtxt and their meaning are those of the sources of Triton 2.73 (onnxruntime.cc,
openvino.cc, pt/model_state.cc, instance_state.cc of TensorRT). docs/bundle.md says which backends
have served such a repository, and which never.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined

from tightrope.artifacts.files import json_bytes
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.bundle.subject import require_built, result_of
from tightrope.bundle.triton_settings import own, settings_of
from tightrope.bundle.write import write_archive
from tightrope.engine_table import ENGINES
from tightrope.errors import TightropeError, printable
from tightrope.signature import SEQUENCE
from tightrope.summary.document import read_summary
from tightrope.summary.measured import StudyEntry
from tightrope.summary.result_types import Result
from tightrope.variants import Variant, parse

README = "README.md"
# a folder, a part of an address, and no option of a command
NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
# precisions of OpenVINO that compute in bf16 where they do not in int8
BF16 = ("bf16", "int8-bf16")
# beside config.pbtxt, as each folder beside the model's is another model to Triton
FOR_CLIENTS = ("tokenizer.json", "preprocessor_config.json")


class Templates(NamedTuple):
    """The files from which config.pbtxt and README.md are made."""

    config: Path
    readme: Path


class Backend(NamedTuple):
    """A backend of Triton: its names in config.pbtxt and its files, named as it looks for them.

    `batches` says whether it takes the batches that Triton makes of several requests.
    """

    name: str
    platform: str | None
    files: tuple[str, ...]
    library: str
    batches: bool = True


BACKENDS = {
    "onnxruntime": Backend("onnxruntime", None, ("model.onnx",), "onnxruntime"),
    "openvino": Backend("openvino", None, ("model.xml", "model.bin"), "openvino", batches=False),
    "tensorrt": Backend("tensorrt", "tensorrt_plan", ("model.plan",), "tensorrt-cu13"),
    "torchscript": Backend("pytorch", "pytorch_libtorch", ("model.pt",), "torch"),
}
REFUSED = {
    "pytorch": "it is a Python program, and no backend of Triton loads its files",
    "compile": "it is compiled by Python while it loads, and no backend of Triton loads its files",
    "inductor": "Triton's backend for AOTInductor packages takes no batches",
    "tvm": "Triton has no backend for TVM",
}


def write_triton(
    target: Path | str,
    *,
    engine: Path,
    checkpoint: Path,
    summary: Path,
    model: str,
    templates: Templates,
) -> None:
    """Write the repository as an archive with the tokenizer and the result, from manifests' paths.

    Raises TightropeError as `triton_files` does.
    """
    built = read_manifest(engine, EngineManifest)
    require_built(built)
    made, document = read_manifest(checkpoint, CheckpointManifest), read_summary(summary)
    result = result_of(document, model, built["variant"])
    host = document["hosts"].get(result["host"] or "")
    texts = triton_files(
        model,
        built,
        made["labels"],
        result,
        document["studies"].get("throughput", []),
        document["studies"].get("traffic", []),
        templates=templates,
        isa=host["isa"] if host else (),
    )
    files: dict[str, bytes | Path] = {name: text.encode() for name, text in texts.items()}
    files |= {path: engine.parent / name for path, name in engine_files(model, built).items()}
    for name in FOR_CLIENTS:
        if name in made["files"]:
            files[f"{model}/{name}"] = checkpoint.parent / name
    files[f"{model}/result.json"] = json_bytes(dict(result))
    write_archive(target, f"{model}-{built['variant']}-triton", files)


def triton_files(
    model: str,
    engine: EngineManifest,
    labels: list[str],
    result: Result,
    throughput: list[StudyEntry],
    traffic: list[StudyEntry],
    *,
    templates: Templates,
    isa: Sequence[str] = (),
) -> dict[str, str]:
    """Return the text files of the repository by their path: configuration, labels and README.md.

    `labels` are in the order of the logits, `throughput` and `traffic` those of summary.json, of
    which entries of other variants are ignored; `isa` is that of the measured host, whose bf16 an
    OpenVINO engine of another precision is refused for. Raises TightropeError in one line for a
    name that is no folder, an engine that failed or that no backend of Triton serves as it was
    measured, a result of another engine or without a measurement, and without labels.
    """
    variant, backend = backend_of(model, engine)
    require_precision(model, variant, isa)
    require_result(model, engine, labels, result)
    settings, rows = settings_of(engine["options"], result, throughput, traffic), result["latency"]
    values = {
        "backend": backend,
        "bf16": variant.precision in BF16,
        "engine": {"graphs_refused": None, "max_sequence": None, **engine},
        "half": variant.engine == "torchscript" and variant.precision == "fp16",
        "images": not any(SEQUENCE in axes for _, _, axes in engine["inputs"]),
        "labels": labels,
        "lengths": lengths(engine, result, traffic),
        "model": model,
        "name": variant.engine,
        "on_gpu": variant.device == "cuda",
        "options": engine["options"],
        "settings": settings,
        # each shape whose latency was measured, within the largest batch
        "shapes": [
            shape
            for shape in dict.fromkeys((one["batch"], one.get("sequence")) for one in rows)
            if shape[0] <= settings.largest
        ],
        "signature": [
            (name, dtype, [1, *(16 if isinstance(axis, str) else axis for axis in axes[1:])])
            for name, dtype, axes in engine["inputs"]
        ],
        "variant": variant,
        "version": engine["libraries"].get(backend.library) or "an unknown version",
    }
    return {
        f"{model}/config.pbtxt": rendered(templates.config, values),
        f"{model}/labels.txt": "".join(f"{printable(label)}\n" for label in labels),
        README: rendered(templates.readme, values),
    }


def rendered(template: Path, values: dict[str, Any]) -> str:
    """Return the text of a template."""
    jinja = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    jinja.filters["quoted"] = quoted
    return jinja.from_string(template.read_text()).render(values)


def quoted(text: str) -> str:
    """Return a string of config.pbtxt; quotes, backslashes and bytes beyond ASCII are escaped."""
    return '"' + "".join(map(escaped, text.encode())) + '"'


def escaped(byte: int) -> str:
    """Return a byte of a quoted string, as three octal digits where it is not printable."""
    if byte in b'"\\':
        return f"\\{chr(byte)}"
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def engine_files(model: str, engine: EngineManifest) -> dict[str, str]:
    """Return the names of the engine's files by their path in the repository."""
    return {f"{model}/1/{name}": name for name in backend_of(model, engine)[1].files}


def backend_of(model: str, engine: EngineManifest) -> tuple[Variant, Backend]:
    """Return the parsed variant and the backend that serves it; raise as `triton_files` does."""
    if not NAME.fullmatch(model) or model.casefold() == README.casefold():
        raise TightropeError(
            f"{model}: no name for a folder and an address of Triton; name the model with up to "
            "100 letters, digits, dots, underscores and hyphens, a letter or digit first"
        )
    name = f"{model} {engine['variant']}"
    if engine["status"] != "ok":
        reason = engine.get("reason", "its build failed")
        raise TightropeError(f"{name}: {reason}; bundle a variant that was built")
    variant = parse(engine["variant"])
    if why := refusal(variant, engine["options"]):
        raise TightropeError(
            f"{name}: {why}; Triton serves variants of {', '.join(BACKENDS)}, and the service of "
            "docs/bundle.md every engine"
        )
    backend = BACKENDS[variant.engine]
    if lacking := sorted({*backend.files} - engine["files"].keys()):
        raise TightropeError(f"{name}: engine.json lists no {lacking[0]}; build the engine again")
    return variant, backend


def refusal(variant: Variant, options: dict[str, Any]) -> str | None:
    """Return why no backend serves a variant, None where one does."""
    if variant.engine == "torchscript" and variant.precision == "bf16":
        return "its logits are bf16, a type that Triton's PyTorch backend has no outputs of"
    if variant.engine == "openvino" and options.get("route") == "pytorch":
        return (
            "converted from PyTorch (`openvino: {route: pytorch}`) its output has no name, which "
            "Triton needs; convert from ONNX"
        )
    if variant.engine == "onnxruntime" and options.get("provider") == "tensorrt":
        return "Triton would build another TensorRT engine than the measured one"
    return REFUSED.get(variant.engine)


def require_precision(model: str, variant: Variant, isa: Sequence[str]) -> None:
    """Raise TightropeError for an OpenVINO engine that would compute in bf16 unasked.

    OpenVINO does where the processor has the instructions, unless it is told f32. The backend's
    only word for it is HINT_BF16. An int8 engine was seen to change a logit by 3.
    """
    instructions = (ENGINES[variant.engine].instructions or {}).get("bf16", ())
    found = sorted({*instructions} & {*isa})
    if variant.engine == "openvino" and variant.precision not in BF16 and found:
        raise TightropeError(
            f"{model} {variant}: on a processor with {found[0]}, as it was measured on, Triton's "
            f"OpenVINO backend computes it in bf16 and cannot be told f32; bundle one of openvino "
            f"in {' or '.join(BF16)}, or of onnxruntime; the service of docs/bundle.md takes any"
        )


def require_result(model: str, engine: EngineManifest, labels: list[str], result: Result) -> None:
    """Raise TightropeError unless the result is of this engine, and there are labels."""
    name = f"{model} {engine['variant']}"
    if (result["model"], result["variant"]) != (model, engine["variant"]):
        other = f"{result['model']} {result['variant']}"
        raise TightropeError(f"{name}: the result is of {other}; take that of the engine")
    if result["status"] != "ok":
        reason = result["reason"] or "it was not measured"
        raise TightropeError(f"{name}: {reason}; bundle a variant that was measured")
    if not labels:
        raise TightropeError(f"{name}: the checkpoint has no labels; prepare it again")


def lengths(engine: EngineManifest, result: Result, traffic: list[StudyEntry]) -> list[int]:
    """Return the lengths in tokens to pad texts to; empty for images.

    The edges of the length buckets under traffic, else of the engine's buckets, else those
    measured.
    """
    load = own(traffic, result)
    edges = load["rows"][0]["edges"] if load else []
    buckets = (engine["options"].get("buckets") or {}).get("sequence", [])
    measured = {row["sequence"] for row in result["latency"] if "sequence" in row}
    return sorted(edges or buckets or measured)
