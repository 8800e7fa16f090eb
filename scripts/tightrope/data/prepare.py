"""Read the data of a model from its source, split it, and write the splits."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import write_bytes
from tightrope.artifacts.manifest import clear_folder, write_manifest
from tightrope.data.material import Material
from tightrope.data.source import load_kind, parse_source
from tightrope.data.splits import IMAGES, TEXTS, Kind, split_material
from tightrope.errors import TightropeError
from tightrope.inputs.image_split import SUFFIX
from tightrope.signature import IMAGE, TEXT

RANDOM_EVALUATION = 512
Sizes = dict[str, int | None]
Splits = dict[str, list[dict[str, Any]]]
Writer = Callable[[Path, list[dict[str, Any]]], None]


def prepare_data(
    manifest: Path | str,
    *,
    source: str,
    columns: dict[str, str],
    splits: Sizes,
    pool: int,
    seed: int,
    task: str = TEXT,
    images: str | None = None,
) -> int:
    """Write the splits of `source` next to `manifest`, and the manifest last.

    Returns the number of dropped items: rows of a remote source without text, image or label, and
    files that are no images by their names.

    `splits` gives the sizes of train and evaluation, `pool` the size of calibration. Texts are
    lines of JSON, {"label": index, "text": text}; for the source `random`, {"random": seed of the
    input}. Images are an Arrow file, see `ImageSplit`; `images` is the location of a table's
    images.
    """
    sizes = {**splits, "calibration": pool}
    fields = {"source": source, "seed": seed, "task": task}
    if source == "random":
        material = Material(labels=[], train=[])
        write_splits(manifest, material, random_splits(sizes, seed), write_lines, fields)
    elif task == IMAGE:
        columns = {"image": columns.get("image", "image"), "label": columns.get("label", "label")}
        material = prepare_images(manifest, sizes, fields, columns=columns, images=images)
    else:
        columns = {name: column for name, column in columns.items() if name != "image"}
        material = read_source(source, columns=columns, sizes=sizes, seed=seed)
        parts = labelled_splits(source, material, sizes, seed, kind=TEXTS)
        write_splits(manifest, material, parts, write_lines, fields)
    return material.left_out


def prepare_images(
    manifest: Path | str,
    sizes: Sizes,
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
        parts = labelled_splits(source, material, sizes, seed, kind=IMAGES)
        write_splits(manifest, material, parts, store.write, fields, suffix=SUFFIX)
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


def write_splits(
    manifest: Path | str,
    material: Material,
    parts: Splits,
    write: Writer,
    fields: dict[str, Any],
    *,
    suffix: str = ".jsonl",
) -> None:
    """Write each split with `write`, then the manifest with `fields` and the material's fields."""
    folder = clear_folder(manifest)
    written = {}
    for split, examples in parts.items():
        write(folder / f"{split}{suffix}", examples)
        written[split] = {"file": f"{split}{suffix}", "samples": len(examples)}
    details: dict[str, Any] = {
        "labels": material.labels or None,
        "left_out": material.left_out,
    }
    if material.labels:
        details["revision"] = material.revision
    write_manifest(manifest, **fields, **details, splits=written)


def write_lines(file: Path, examples: list[dict[str, Any]]) -> None:
    """Write examples as JSON lines in ASCII."""
    lines = [json.dumps(example, sort_keys=True) + "\n" for example in examples]
    write_bytes(file, "".join(lines).encode())


def read_source(source: str, *, columns: dict[str, str], sizes: Sizes, seed: int) -> Material:
    """Read all texts of the source; for docstrings, as many as `sizes` needs."""
    kind, location = parse_source(source, task=TEXT)
    limits = [size for size in sizes.values() if size is not None]
    texts = sum(limits) if len(limits) == len(sizes) else None
    return load_kind(kind, task=TEXT).read(
        source, location, columns=columns, texts=texts, seed=seed
    )


def labelled_splits(
    source: str, material: Material, sizes: Sizes, seed: int, *, kind: Kind
) -> Splits:
    """Return the examples of each split; raise TightropeError for fewer than two labels."""
    if len(material.labels) < 2:
        raise TightropeError(f"{source}: a classifier needs two labels, found {material.labels}")
    balanced = source.startswith("docstrings:")
    parts = split_material(material, sizes, source=source, balanced=balanced, seed=seed, kind=kind)
    return {
        split: [{"label": label, kind.noun: content} for content, label in rows]
        for split, rows in parts.items()
    }


def random_splits(sizes: Sizes, seed: int) -> Splits:
    """Return distinct seeds of random inputs for evaluation and calibration; no train split."""
    first = seed * 1_000_000
    middle = first + (sizes["evaluation"] or RANDOM_EVALUATION)
    last = middle + (sizes["calibration"] or 0)
    ranges = {"evaluation": range(first, middle), "calibration": range(middle, last)}
    return {split: [{"random": number} for number in part] for split, part in ranges.items()}
