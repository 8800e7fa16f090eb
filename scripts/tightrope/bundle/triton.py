"""A model repository of Triton Inference Server, from an engine and its measurements.

Batches, waiting time, instances and threads of the server come each from a measurement. Keys of
config.pbtxt and their meaning are those of the sources of Triton 2.73 (onnxruntime.cc, openvino.cc,
pt/model_state.cc, instance_state.cc of TensorRT). docs/bundle.md says which backends have served
such a repository, and which never.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from tightrope.artifacts.files import json_bytes
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.bundle.facts import rendered
from tightrope.bundle.subject import require_built, result_of
from tightrope.bundle.write import write_archive
from tightrope.decide.result import LatencyRow, Result, Shape, StudyEntry
from tightrope.engine_table import ENGINES
from tightrope.errors import TightropeError, printable
from tightrope.runtimes.shapes import Profile
from tightrope.signature import BATCH, SEQUENCE
from tightrope.summary.document import read_summary
from tightrope.variants import Variant, parse

README = "README.md"
# a folder, a part of an address, and no option of a command
NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
# precisions of OpenVINO that compute in bf16 where they do not in int8
BF16 = ("bf16", "int8-bf16")
# beside config.pbtxt, as each folder beside the model's is another model to Triton
FOR_CLIENTS = {"tokenizer.json", "preprocessor_config.json"}
# share of a lone request's latency that it may wait for others
WAITING = 0.1


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
# why no backend serves an engine, or an engine of that precision or with that option
REFUSED = {
    "pytorch": "it is a Python program, and no backend of Triton loads its files",
    "compile": "it is compiled by Python while it loads, and no backend of Triton loads its files",
    "inductor": "Triton's backend for AOTInductor packages takes no batches",
    "tvm": "Triton has no backend for TVM",
    "torchscript bf16": (
        "its logits are bf16, a type that Triton's PyTorch backend has no outputs of"
    ),
    "openvino route: pytorch": (
        "converted from PyTorch (`openvino: {route: pytorch}`) its output has no name, which "
        "Triton needs; convert from ONNX"
    ),
    "onnxruntime provider: tensorrt": (
        "Triton would build another TensorRT engine than the measured one"
    ),
}


def write_triton(
    target: Path | str,
    *,
    engine: Path,
    checkpoint: Path,
    summary: Path,
    model: str,
    templates: Mapping[str, Path],
) -> None:
    """Write the repository as an archive with the tokenizer and the result, from manifests' paths.

    `templates` are those of config.pbtxt, `config`, and of README.md, `readme`. Raises
    TightropeError as `triton_files` does.
    """
    built = read_manifest(engine, EngineManifest)
    require_built(built)
    made, document = read_manifest(checkpoint, CheckpointManifest), read_summary(summary)
    result = result_of(document, model, built["variant"])
    host = document.hosts.get(result.host or "")
    studies = (document.studies.get(one, []) for one in ("throughput", "traffic"))
    options: dict[str, Any] = {"templates": templates, "isa": host.isa if host else ()}
    texts = triton_files(model, built, made["labels"], result, *studies, **options)
    own_files = BACKENDS[parse(built["variant"]).engine].files
    for_clients = FOR_CLIENTS & made["files"].keys()
    files: dict[str, bytes | Path] = {
        **{name: text.encode() for name, text in texts.items()},
        **{f"{model}/1/{name}": engine.parent / name for name in own_files},
        **{f"{model}/{name}": checkpoint.parent / name for name in for_clients},
        f"{model}/result.json": json_bytes(msgspec.to_builtins(result)),
    }
    write_archive(target, f"{model}-{built['variant']}-triton", files)


def triton_files(
    model: str,
    engine: EngineManifest,
    labels: list[str],
    result: Result,
    throughput: list[StudyEntry],
    traffic: list[StudyEntry],
    *,
    templates: Mapping[str, Path],
    isa: Sequence[str] = (),
) -> dict[str, str]:
    """Return the text files of the repository by their path: configuration, labels and README.md.

    `labels` are in the order of the logits, `throughput` and `traffic` those of summary.json, of
    which entries of other variants are ignored; `isa` is that of the measured host, whose bf16 an
    OpenVINO engine of another precision is refused for. Raises TightropeError in one line for a
    name that is no folder, an engine that no backend of Triton serves as it was measured, a result
    without a measurement, and without labels.
    """
    variant, backend = backend_of(model, engine)
    name, options = f"{model} {variant}", engine["options"]
    require_precision(name, variant, isa)
    if result.status != "ok":
        reason = result.reason or "it was not measured"
        raise TightropeError(f"{name}: {reason}; bundle a variant that was measured")
    if not labels:
        raise TightropeError(f"{name}: the checkpoint has no labels; prepare it again")
    limit = largest_of(options)
    rows = rows_of(result, limit)
    load, study = own(traffic, result), own(throughput, result)
    curve = (study and curve_of_throughput(study, limit)) or curve_of_latency(result, rows)
    asked = load.rows if load else []
    batches = {*(one.batch for one in curve.points), *(row.shape.batch for row in rows)}
    batches |= {one["batch"] for one in asked if one["samples_per_s"] and one["batch"] <= limit}
    # to pad texts to: the edges of the length buckets under traffic, else of the engine's buckets
    buckets = options.get("buckets") or {}
    lengths = (asked and asked[0]["edges"]) or buckets.get(SEQUENCE)
    measured = {size for row in result.latency if (size := row.shape.sequence)}
    values = {
        "alone": min(curve.points),
        "backend": backend,
        "bf16": variant.precision in BF16,
        "curve": curve,
        "delay": delay_of(curve),
        "engine": {"graphs_refused": None, "max_sequence": None, **engine},
        "half": variant.engine == "torchscript" and variant.precision == "fp16",
        "images": not any(SEQUENCE in axes for _, _, axes in engine["inputs"]),
        "labels": labels,
        "largest": max(batches),
        "lengths": sorted(lengths or measured),
        "limit": None if limit == math.inf else limit,
        "model": model,
        "name": variant.engine,
        "on_gpu": variant.device == "cuda",
        "options": options,
        # whose latency was measured
        "shapes": dict.fromkeys((one.shape.batch, one.shape.sequence) for one in result.latency),
        "signature": [
            (name, dtype, [1, *(16 if isinstance(axis, str) else axis for axis in axes[1:])])
            for name, dtype, axes in engine["inputs"]
        ],
        "variant": variant,
        "version": engine["libraries"].get(backend.library) or "an unknown version",
    }
    return {
        f"{model}/config.pbtxt": rendered(templates["config"], values, quoted=quoted),
        f"{model}/labels.txt": "".join(f"{printable(label)}\n" for label in labels),
        README: rendered(templates["readme"], values),
    }


def quoted(text: str) -> str:
    """Return a string of config.pbtxt; quotes, backslashes and bytes beyond ASCII are escaped."""
    escapes = {byte: f"\\{byte:03o}" for byte in range(256) if not 0x20 <= byte < 0x7F}
    escapes |= {byte: f"\\{chr(byte)}" for byte in b'"\\'}
    return '"' + "".join(escapes.get(byte, chr(byte)) for byte in text.encode()) + '"'


def backend_of(model: str, engine: EngineManifest) -> tuple[Variant, Backend]:
    """Return the parsed variant and the backend that serves it; raise as `triton_files` does."""
    if not NAME.fullmatch(model) or model.casefold() == README.casefold():
        raise TightropeError(
            f"{model}: no name for a folder and an address of Triton; name the model with up to "
            "100 letters, digits, dots, underscores and hyphens, a letter or digit first"
        )
    name, variant = f"{model} {engine['variant']}", parse(engine["variant"])
    of_options = [f"{one}: {value}" for one, value in engine["options"].items()]
    kinds = [f"{variant.engine} {one}".strip() for one in ("", variant.precision, *of_options)]
    if why := next((REFUSED[one] for one in kinds if one in REFUSED), None):
        raise TightropeError(
            f"{name}: {why}; Triton serves variants of {', '.join(BACKENDS)}, and the service of "
            "docs/bundle.md every engine"
        )
    backend = BACKENDS[variant.engine]
    if lacking := sorted({*backend.files} - engine["files"].keys()):
        raise TightropeError(f"{name}: engine.json lists no {lacking[0]}; build the engine again")
    return variant, backend


def require_precision(name: str, variant: Variant, isa: Sequence[str]) -> None:
    """Raise TightropeError for an OpenVINO engine that would compute in bf16 unasked.

    OpenVINO does where the processor has the instructions, unless it is told f32. The backend's
    only word for it is HINT_BF16. An int8 engine was seen to change a logit by 3.
    """
    instructions = (ENGINES[variant.engine].instructions or {}).get("bf16", ())
    found = sorted({*instructions} & {*isa})
    if variant.engine == "openvino" and variant.precision not in BF16 and found:
        raise TightropeError(
            f"{name}: on a processor with {found[0]}, as it was measured on, Triton's "
            f"OpenVINO backend computes it in bf16 and cannot be told f32; bundle one of openvino "
            f"in {' or '.join(BF16)}, or of onnxruntime; the service of docs/bundle.md takes any"
        )


class Point(NamedTuple):
    """Calls of one batch; `call_s` is the median, p99 is None where it is not known."""

    batch: int
    samples_per_s: float
    call_s: float
    p99_s: float | None
    provisional: bool


class Curve(NamedTuple):
    """Calls at the same shape by `instances` with `threads` each, of which `chosen` are the best.

    `study` says which part of summary.json they are from, `shape` has the sizes of a sample.
    `bound_s` is the bound on p99, if any, and `within` whether it decides which are the best.
    """

    study: str
    shape: Mapping[str, int]
    points: list[Point]
    chosen: Point
    instances: int
    threads: int
    bound_s: float | None = None
    within: bool = False


def largest_of(options: dict[str, Any]) -> float:
    """Return the largest batch that an engine with these options takes, by profiles or buckets."""
    if options.get("profiles"):
        return max(Profile.of(one).max[0] for one in options["profiles"])
    return max(options["buckets"][BATCH]) if options.get("buckets") else math.inf


def own(entries: Iterable[StudyEntry], result: Result) -> StudyEntry | None:
    """Return the entry of the variant of `result` on the same host, None without one."""
    wanted = (result.model, result.variant, result.host, "ok")
    found = (one for one in entries if (one.model, one.variant, one.host, one.status) == wanted)
    return next(found, None)


def curve_of_throughput(entry: StudyEntry, limit: float) -> Curve | None:
    """Return the points with the division of the best one, the best within the bound if any."""
    within = [row for row in entry.rows if row["best_within_bound"]]
    best = next(iter(within or [row for row in entry.rows if row["best"]]), None)
    if best is None or best["batch"] > limit:
        return None
    instances, threads = best["instances"], best["threads"]
    points = [
        Point(
            one["batch"],
            rate["value"],
            one["p50_s"] or instances * one["batch"] / rate["value"],
            one["p99_s"],
            one["provisional"],
        )
        for one in entry.rows
        if (one["instances"], one["threads"]) == (instances, threads)
        and (rate := one["samples_per_s"])
        and one["batch"] <= limit
    ]
    chosen = next(one for one in points if one.batch == best["batch"])
    bound = best["bound_s"], bool(within)
    return Curve("studies.throughput", entry.shape, points, chosen, instances, threads, *bound)


def curve_of_latency(result: Result, rows: Sequence[LatencyRow]) -> Curve:
    """Return the points of the shape with most batches, of several such that with most tokens."""
    groups: dict[Shape, dict[Point, LatencyRow]] = {}
    for row in rows:
        rate, batch = row.throughput_per_s or 0.0, row.shape.batch
        point = Point(batch, rate, row.paired_s or batch / rate, row.p99_s, row.provisional)
        groups.setdefault(replace(row.shape, batch=1), {})[point] = row
    shape = max(groups, key=lambda one: (len(groups[one]), one.sequence or 0))
    points = groups[shape]
    chosen = max(points, key=lambda one: one.samples_per_s)
    streams = points[chosen].streams
    instances = (streams.best if streams else None) or 1
    return Curve("latency", shape.sizes, [*points], chosen, instances, result.threads or 1)


def rows_of(result: Result, limit: float) -> list[LatencyRow]:
    """Return the rows that have times and no padding; raise TightropeError without one."""
    rows = [
        row
        for row in result.latency
        if row.throughput_per_s and not row.shape.tokens and row.shape.batch <= limit
    ]
    if not rows:
        raise TightropeError(
            f"{result.model} {result.variant}: no undisturbed latency from which a server "
            "could be set up; measure it again on a quiet machine"
        )
    return rows


def delay_of(curve: Curve) -> tuple[int, bool]:
    """Return how long a request may wait for others, in microseconds, and if a bound decides it.

    A tenth of the call of the smallest measured batch, per sample, so that waiting costs a request
    that comes alone at most 10 % of its latency; requests that come while all instances are at work
    wait for these anyway. No more than a bound on p99 leaves, and none where 1 is the best batch.
    """
    if curve.chosen.batch == 1:
        return 0, False
    alone, left_s = min(curve.points), math.inf
    delay_s = WAITING * alone.call_s / alone.batch
    if curve.bound_s is not None:
        left_s = max(0.0, curve.bound_s - (curve.chosen.p99_s or curve.bound_s))
    return int(1e6 * min(delay_s, left_s)), left_s < delay_s
