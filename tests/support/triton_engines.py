"""Engines and their measurements as a repository for Triton gets them: results of tests/data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manifests import ENGINE
from msgspec import convert
from msgspec.structs import replace
from report_pages import completed, example, summary_of
from tightrope.decide.result import LatencyRow, Result, Shape, StudyEntry
from tightrope.signature import of_texts

EXAMPLE = summary_of(example())
FOLDER = Path(__file__).parents[2] / "scripts/tightrope/bundle/template"
TEMPLATES = {"config": FOLDER / "triton.pbtxt.j2", "readme": FOLDER / "triton.md.j2"}
MODEL = "minilm-docstrings"
LABELS = EXAMPLE.models[MODEL].labels or []
FILES = {
    "onnxruntime": ["model.onnx"],
    "openvino": ["model.xml", "model.bin"],
    "tensorrt": ["model.plan", "layers.json"],
    "torchscript": ["model.pt"],
}
LIBRARIES = {"onnxruntime": "1.31.1", "openvino": "2026.4.1", "tensorrt-cu13": "11.4.0.106"}
PROFILES = [[[1, 16], [1, 128], [1, 512]], [[1, 16], [16, 128], [16, 128]]]
OPTIONS: dict[str, dict[str, Any]] = {
    "onnxruntime": {"optimization": "all", "spinning": True, "arena": True, "graphs": False},
    "openvino": {
        "route": "onnx",
        "blobs": False,
        "buckets": {"batch": [1, 16], "sequence": [32, 64, 128]},
    },
    "tensorrt": {"profiles": PROFILES, "graphs": True, "version_compatible": False},
    "torchscript": {"graphs": False},
}


def engine(variant: str, **options: Any) -> Any:
    """The manifest of a built engine, with these options besides those of OPTIONS."""
    _, name, precision, *_ = variant.split("-")
    files = {one: {"sha256": "0" * 64, "size_bytes": 1} for one in FILES.get(name, ["a"])}
    return {
        **{**ENGINE, "variant": variant, "precision": precision, "schema": 1, "files": files},
        "options": {**OPTIONS.get(name, {}), **options},
        **{"inputs": of_texts().facts(), "max_sequence": 512, "libraries": LIBRARIES},
    }


def result(variant: str, **changes: Any) -> Result:
    """A real result under the name of that variant."""
    rows = [one for one in EXAMPLE.results if one.variant == "cpu-onnxruntime-fp32"]
    found = next(one for one in rows if one.model == MODEL)
    return replace(found, **{"variant": variant, "status": "ok", **changes})


def row(batch: int, seconds: float, sizes: Mapping[str, int] = {}, **fields: Any) -> LatencyRow:
    """A row of `latency` of an image or a text of these sizes, of calls that all take as long."""
    times = {"p50_s": seconds, "throughput_per_s": batch / seconds}
    return LatencyRow(Shape(batch, **sizes), **{**times, **fields})


def point(instances: int, threads: int, batch: int, seconds: float, **fields: Any) -> Any:
    """A point of `throughput` whose calls all take as long."""
    return {
        **{"instances": instances, "threads": threads, "batch": batch, "reason": None},
        **{"skipped": False, "disturbed": None, "provisional": False, "calls": 99},
        "samples_per_s": dict.fromkeys(("value", "low", "high"), instances * batch / seconds),
        "p50_s": seconds,
        "p99_s": 1.5 * seconds,
        **fields,
    }


def throughput(
    points: list[Any], variant: str, *, bound_s: Any = None, within: Any = None, **fields: Any
) -> Any:
    """An entry of the study on the host of `result`, the best point by its rate."""
    best = max(points, key=lambda one: one["samples_per_s"]["value"])
    marks = [
        {"best": one is best, "best_within_bound": at == within, "bound_s": bound_s}
        for at, one in enumerate(points)
    ]
    rows = [{**one, **mark} for one, mark in zip(points, marks, strict=True)]
    known = {"model": MODEL, "variant": variant, "host": result(variant).host, "status": "ok"}
    told = {"shape": {"sequence": 128}, "rows": rows, **fields}
    return convert(completed({**known, **told}, StudyEntry), StudyEntry)
