"""Read the data of a model from its source, and write its distinct examples in their order."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import write_bytes
from tightrope.artifacts.manifest import clear_folder, write_manifest
from tightrope.data.material import Material, Row, require_clear
from tightrope.data.ranges import LabelledParts, Sizes, check_ranges
from tightrope.data.source import load_kind, parse_source
from tightrope.data.splits import IMAGES, TEXTS, Kind, limited, ordered
from tightrope.errors import TightropeError
from tightrope.inputs.image_split import SUFFIX
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
) -> int:
    """Write the examples of `source` next to `manifest`, and the manifest last.

    Returns the number of dropped items: rows of a remote source without text, image or label, and
    files that are no images by their names.

    `limits` says how many examples are kept for train with calibration and for evaluation, None
    for all. `sizes` are those of the splits; they are only checked. Texts are lines of JSON,
    {"label": index, "text": text}. Images are an Arrow file, see `ImageSplit`; `images` is the
    location of a table's images. The source `random` has no files: its splits are seeds.
    """
    fields = {"source": source, "seed": seed, "task": task}
    if source == "random":
        material = Material(labels=[], train=[])
        write_parts(manifest, material, {}, write_lines, fields)
    elif task == IMAGE:
        columns = {"image": columns.get("image", "image"), "label": columns.get("label", "label")}
        material = prepare_images(manifest, sizes, limits, fields, columns=columns, images=images)
    else:
        columns = {name: column for name, column in columns.items() if name != "image"}
        material = read_source(source, columns=columns, limits=limits, seed=seed)
        parts = checked_parts(source, material, sizes, seed, kind=TEXTS)
        write_parts(manifest, material, limited(parts, limits), write_lines, fields)
    return material.left_out


def prepare_images(
    manifest: Path | str,
    sizes: Sizes,
    limits: Sizes,
    fields: dict[str, Any],
    *,
    columns: dict[str, str],
    images: str | None,
) -> Material:
    """Do the work of prepare_data for images; a store holds them until all are read."""
    # imports pyarrow, which texts do not need
    from tightrope.data.image_store import image_store

    source, seed = fields["source"], fields["seed"]
    kind, location = parse_source(source, task=IMAGE)
    with image_store(Path(manifest).parent) as store:
        material = load_kind(kind, task=IMAGE).read(
            source, location, store, columns=columns, images=images
        )
        check_labels(material)
        parts = limited(checked_parts(source, material, sizes, seed, kind=IMAGES), limits)
        write_parts(manifest, material, parts, store.write, fields, kind=IMAGES, suffix=SUFFIX)
    return material


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
    manifest: Path | str,
    material: Material,
    parts: Parts,
    write: Writer,
    fields: dict[str, Any],
    *,
    kind: Kind = TEXTS,
    suffix: str = ".jsonl",
) -> None:
    """Write each part with `write`, then the manifest with `fields` and the material's fields."""
    folder = clear_folder(manifest)
    written = {}
    for part, rows in parts.items():
        examples = [{"label": label, kind.noun: content} for content, label in rows]
        write(folder / f"{part}{suffix}", examples)
        written[part] = {"file": f"{part}{suffix}", "samples": len(rows)}
    details: dict[str, Any] = {
        "labels": material.labels or None,
        "classes": classes_of(material),
        "left_out": material.left_out,
    }
    if material.labels:
        details["revision"] = material.revision
    write_manifest(manifest, **fields, **details, parts=written)


def write_lines(file: Path, examples: list[dict[str, Any]]) -> None:
    """Write examples as JSON lines in ASCII."""
    lines = [json.dumps(example, sort_keys=True) + "\n" for example in examples]
    write_bytes(file, "".join(lines).encode())


def read_source(source: str, *, columns: dict[str, str], limits: Sizes, seed: int) -> Material:
    """Read all texts of the source; for docstrings, as many as `limits` keeps."""
    kind, location = parse_source(source, task=TEXT)
    kept = [size for size in limits.values() if size is not None]
    texts = sum(kept) if len(kept) == len(limits) else None
    return load_kind(kind, task=TEXT).read(
        source, location, columns=columns, texts=texts, seed=seed
    )


def checked_parts(source: str, material: Material, sizes: Sizes, seed: int, *, kind: Kind) -> Parts:
    """Return all distinct rows by part.

    Raises TightropeError for fewer than two labels, and where the parts do not hold the splits.
    """
    require_clear(source, material.labels)
    if len(material.labels) < 2:
        raise TightropeError(f"{source}: a classifier needs two labels, found {material.labels}")
    parts = ordered(material, balanced=source.startswith("docstrings:"), seed=seed, kind=kind)
    labels = {part: [label for _, label in rows] for part, rows in parts.items()}
    classes = classes_of(material)
    check_ranges(LabelledParts(source, kind.noun, material.labels, classes, labels), sizes)
    return parts


def classes_of(material: Material) -> list[int]:
    """Return the indices of the labels that occur in the source."""
    return sorted({label for _, label in (*material.train, *(material.evaluation or ()))})
