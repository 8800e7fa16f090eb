"""Read the data of a model from its source, and write its distinct examples in their order."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import write_bytes
from tightrope.artifacts.manifest import clear_folder, write_manifest
from tightrope.data.source import load_kind, parse_source
from tightrope.data.splits import (
    LabelledParts,
    Material,
    Row,
    Sizes,
    check_ranges,
    left_out,
    limited,
    ordered,
    require_clear,
)
from tightrope.errors import TightropeError
from tightrope.inputs.encode import SUFFIX
from tightrope.signature import IMAGE, TEXT

Parts = dict[str, list[Row]]
Writer = Callable[[Path, list[dict[str, Any]]], None]


def prepare_data(
    manifest: Path | str,
    *,
    source: str,
    columns: dict[str, str],
    sizes: Sizes,
    limits: Sizes,
    seed: int,
    task: str = TEXT,
    images: str | None = None,
) -> dict[str, dict[str, int]]:
    """Write the examples of `source` next to `manifest`, and the manifest last.

    Returns by part how many rows there are, and how many are left out by the reason: without text,
    image or label in a remote source (and files that are no images by their names), equal to
    another, with two labels, or of evaluation too.

    `limits` says how many examples are kept for train with calibration and for evaluation, None
    for all. `sizes` are those of the splits; they are only checked. Texts are lines of JSON,
    {"label": index, "text": text}. Images are an Arrow file, see `ImageSplit`; `images` is the
    location of a table's images. The source `random` has no files: its splits are seeds.
    """
    fields = {"source": source, "seed": seed, "task": task}
    if source == "random":
        write_parts(manifest, Material(labels=[], train=[]), {}, write_lines, fields)
        return {}
    kind, location = parse_source(source, task=task)
    read = load_kind(kind, task=task).read
    if task == TEXT:
        columns = {name: column for name, column in columns.items() if name != "image"}
        # for docstrings: as many as are kept
        kept = [size for size in limits.values() if size is not None]
        texts = sum(kept) if len(kept) == len(limits) else None
        material = read(source, location, columns=columns, texts=texts, seed=seed)
        parts = checked_parts(material, sizes, fields)
        return write_parts(manifest, material, limited(parts, limits), write_lines, fields)
    # imports pyarrow, which texts do not need
    from tightrope.data.image_store import image_store

    columns = {"image": columns.get("image", "image"), "label": columns.get("label", "label")}
    # a store holds the images until all are read
    with image_store(Path(manifest).parent) as store:
        material = read(source, location, store, columns=columns, images=images)
        check_labels(material)
        parts = checked_parts(material, sizes, fields)
        return write_parts(manifest, material, limited(parts, limits), store.write, fields)


def check_labels(material: Material) -> None:
    """Raise TightropeError for an evaluation label that no training image has."""
    classes = {label for _, label in material.train}
    for image, label in material.evaluation or []:
        if label not in classes:
            raise TightropeError(
                f"{image.name}: its label {material.labels[label]!r} is none of the {len(classes)} "
                "labels of the training images; fix it, or bring images of it"
            )


def write_parts(
    manifest: Path | str, material: Material, parts: Parts, write: Writer, fields: dict[str, Any]
) -> dict[str, dict[str, int]]:
    """Write the parts, then the manifest with `fields`; return what `left_out` does."""
    folder, written = clear_folder(manifest), {}
    noun, suffix = ("image", SUFFIX) if fields["task"] == IMAGE else ("text", ".jsonl")
    for part, rows in parts.items():
        examples = [{"label": label, noun: content} for content, label in rows]
        write(folder / f"{part}{suffix}", examples)
        written[part] = {"file": f"{part}{suffix}", "samples": len(rows)}
    counts = left_out(material)
    if material.labels:
        fields = {**fields, "revision": material.revision}
    known = {"labels": material.labels or None, "classes": classes_of(material)}
    write_manifest(manifest, **fields, **known, left_out=counts, parts=written)
    return counts


def write_lines(file: Path, examples: list[dict[str, Any]]) -> None:
    """Write examples as JSON lines in ASCII."""
    lines = [json.dumps(example, sort_keys=True) + "\n" for example in examples]
    write_bytes(file, "".join(lines).encode())


def checked_parts(material: Material, sizes: Sizes, fields: dict[str, Any]) -> Parts:
    """Return all distinct rows by part.

    Raises TightropeError for fewer than two labels, and where the parts do not hold the splits.
    """
    source, noun = fields["source"], "image" if fields["task"] == IMAGE else "text"
    require_clear(source, material.labels)
    if len(material.labels) < 2:
        raise TightropeError(f"{source}: a classifier needs two labels, found {material.labels}")
    balanced = source.startswith("docstrings:")
    parts = ordered(material, balanced=balanced, seed=fields["seed"])
    labels = {part: [label for _, label in rows] for part, rows in parts.items()}
    classes = classes_of(material)
    check_ranges(LabelledParts(source, noun, material.labels, classes, labels), sizes)
    return parts


def classes_of(material: Material) -> list[int]:
    """Return the indices of the labels that occur in the source."""
    return sorted({label for _, label in (*material.train, *(material.evaluation or ()))})
