"""Engines that a run builds again although they could serve the measured shapes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

from tightrope.artifacts.files import read_json
from tightrope.errors import ArtifactError
from tightrope.plan.config import Document
from tightrope.plan.config_checks import has_buckets
from tightrope.plan.job_inputs import engine_manifest
from tightrope.plan.plan import Plan
from tightrope.plan.shapes import buckets_of, free_sizes

Sizes = dict[str, list[int]]


class Options(TypedDict, total=False):
    """Options of an engine, of which only the buckets matter here."""

    buckets: Sizes | None


class Built(TypedDict):
    """What is read of the manifest of an engine."""

    status: str
    options: Options


def bucket_lines(config: Document, plan: Plan) -> Iterator[str]:
    """Yield a line per model whose engines are built again because `buckets: auto` has changed.

    Only where the buckets of the engines hold all measured shapes.
    """
    told = set()
    for model, variant in plan.jobs if config["buckets"] == "auto" else []:
        if model in told or not has_buckets(config, variant):
            continue
        built, planned = built_buckets(engine_manifest(model, variant)), buckets_of(config, model)
        if built and built != planned and holds(built, free_sizes(config, model)):
            told.add(model)
            kept = ", ".join(f"{axis}: {sizes}" for axis, sizes in built.items())
            yield (
                f"rebuilt: engines of {model} with buckets: auto, which follows shapes; "
                f"buckets: {{{kept}}} holds these shapes as well and keeps the engines"
            )


def built_buckets(engine: str) -> Sizes | None:
    """Return the buckets with which an engine was built, None without them."""
    try:
        document: dict[str, Any] = read_json(Path(engine), Built)
    except ArtifactError:
        return None
    buckets: Sizes | None = document["options"].get("buckets")
    return buckets if document["status"] == "ok" else None


def holds(buckets: Sizes, shapes: list[dict[str, int]]) -> bool:
    """Return whether the largest buckets hold every shape."""
    sizes = ((axis, size) for shape in shapes for axis, size in shape.items())
    return all(size <= max(buckets.get(axis, ()), default=0) for axis, size in sizes)
