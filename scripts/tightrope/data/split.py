"""Write the manifest of one split of prepared data: which rows it takes."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.manifest import SCHEMA, read_manifest
from tightrope.artifacts.manifest_types import DataManifest
from tightrope.data.ranges import TIMING_SAMPLES, LabelledParts, Sizes, check_ranges, rows_of
from tightrope.inputs.image_split import SUFFIX, ImageSplit
from tightrope.signature import IMAGE

RANDOM_EVALUATION = 512
# distance between the seeds of random inputs for two seeds of a model, and for two splits
SEEDS = 1_000_000
CALIBRATION_SEEDS = 500_000


def split_data(data: Path | str, target: Path | str, *, split: str, sizes: Sizes) -> None:
    """Write manifest `target` of a split (train, evaluation, calibration, timing) of `data`.

    It refers to a file beside `data`; nothing is copied. `sizes` are those of train, evaluation and
    calibration, None for all examples that there are. Raises TightropeError where the examples are
    too few for all splits together, or where calibration lacks a class.
    """
    material = read_manifest(data, DataManifest)
    folder = Path(data).parent
    file, files = None, {}
    if material["parts"]:
        labels = {name: labels_in(folder / one["file"]) for name, one in material["parts"].items()}
        noun = "image" if material["task"] == IMAGE else "text"
        names, classes = material["labels"] or [], material["classes"]
        check_ranges(LabelledParts(material["source"], noun, names, classes, labels), sizes)
        part, rows = rows_of(split, sizes, {name: len(one) for name, one in labels.items()})
        name = material["parts"][part]["file"]
        file = Path(os.path.relpath(folder / name, Path(target).parent)).as_posix()
        files = {file: material["files"][name]}
    else:
        rows = random_rows(split, sizes, material["seed"])
    fields: dict[str, Any] = {
        name: material.get(name) for name in ("task", "source", "revision", "labels")
    }
    fields |= {"split": split, "file": file, "samples": len(rows), "files": files}
    write_artifact(target, {**fields, "rows": [rows.start, rows.stop, rows.step], "schema": SCHEMA})


def labels_in(file: Path) -> Sequence[int]:
    """Return the label of each row of a file beside data.json."""
    if file.suffix == SUFFIX:
        return ImageSplit(file).labels()
    return [json.loads(line)["label"] for line in file.read_text().splitlines()]


def random_rows(split: str, sizes: Sizes, seed: int) -> range:
    """Return the seeds of the random inputs of a split, none for train."""
    first = seed * SEEDS
    if split == "train":
        return range(0)
    if split == "calibration":
        begin = first + CALIBRATION_SEEDS
        return range(begin, begin + (sizes["calibration"] or 0))
    size = TIMING_SAMPLES if split == "timing" else sizes["evaluation"] or RANDOM_EVALUATION
    return range(first, first + size)
