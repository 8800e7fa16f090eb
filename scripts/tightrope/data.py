"""The data of a model: read from its source, split, and written as JSON lines."""

import json
from pathlib import Path
from typing import Any

from tightrope.errors import ConfigError, TightropeError
from tightrope.files import write_bytes
from tightrope.manifest import clear_folder, write_manifest
from tightrope.provenance import library_versions
from tightrope.sources.docstrings import read_docstrings
from tightrope.sources.files import matching_files, read_files, table_suffix
from tightrope.sources.hub import parse_place, read_hub
from tightrope.sources.material import Material
from tightrope.sources.package import package_folder, package_version
from tightrope.splits import split_material

KINDS = ("docstrings:packages", "files:pattern", "hub:owner/name@revision", "random")
REMEDY = (
    "to use local tables instead, give the model data 'files:PATTERN', "
    "for example with --config 'models={NAME: {data: \"files:my/*.tsv\"}}'"
)
RANDOM_EVALUATION = 512


def prepare_data(
    manifest: Path | str,
    *,
    source: str,
    columns: dict[str, str],
    splits: dict[str, int | None],
    pool: int,
    seed: int,
) -> int:
    """Write the splits of `source` beside `manifest`, and the manifest last.

    Returns how many rows of a remote source were left out, for they had no text or no label.

    `splits` gives the sizes of train and evaluation, `pool` that of calibration. A line is
    {"label": index, "text": text}; for the source `random` {"random": seed of the input}.
    """
    sizes = {**splits, "calibration": pool}
    fields: dict[str, Any] = {"source": source, "seed": seed, "labels": None, "left_out": 0}
    if source == "random":
        parts = random_splits(sizes, seed)
    else:
        material = read_source(source, columns=columns, sizes=sizes, seed=seed)
        fields.update(
            labels=material.labels, revision=material.revision, left_out=material.left_out
        )
        parts = labelled_splits(source, material, sizes, seed)
    folder = clear_folder(manifest)
    fields["splits"] = {}
    for split, examples in parts.items():
        lines = [json.dumps(example, sort_keys=True) + "\n" for example in examples]
        write_bytes(folder / f"{split}.jsonl", "".join(lines).encode())
        fields["splits"][split] = {"file": f"{split}.jsonl", "samples": len(examples)}
    write_manifest(manifest, **fields)
    return int(fields["left_out"])


def read_source(
    source: str, *, columns: dict[str, str], sizes: dict[str, int | None], seed: int
) -> Material:
    """Everything that the source has, for docstrings as much as the sizes ask for."""
    kind, place = parse_source(source)
    if kind == "files":
        return read_files(source, place, columns=columns)
    if kind == "hub":
        return read_hub(source, place, columns=columns, remedy=REMEDY)
    wanted = list(sizes.values())
    texts = None if None in wanted else sum(wanted)
    return read_docstrings(source, package_names(place), texts=texts, seed=seed)


def labelled_splits(
    source: str, material: Material, sizes: dict[str, int | None], seed: int
) -> dict[str, list[dict[str, Any]]]:
    """Examples of each split; raises TightropeError where there is nothing to tell apart."""
    if len(material.labels) < 2:
        raise TightropeError(f"{source}: a classifier needs two labels, found {material.labels}")
    balanced = source.startswith("docstrings:")
    parts = split_material(material, sizes, source=source, balanced=balanced, seed=seed)
    return {
        split: [{"label": label, "text": text} for text, label in rows]
        for split, rows in parts.items()
    }


def random_splits(sizes: dict[str, int | None], seed: int) -> dict[str, list[dict[str, Any]]]:
    """Seeds of random inputs, no two of them alike; there is nothing to train on."""
    first = seed * 1_000_000
    middle = first + (sizes["evaluation"] or RANDOM_EVALUATION)
    last = middle + (sizes["calibration"] or 0)
    ranges = {"evaluation": range(first, middle), "calibration": range(middle, last)}
    return {split: [{"random": number} for number in part] for split, part in ranges.items()}


def parse_source(source: str) -> tuple[str, str]:
    """Kind and place of a data source; raises ConfigError naming the kinds that there are."""
    kind, _, place = source.partition(":")
    known = [known.partition(":")[0] for known in KINDS]
    if kind not in known or (kind == "random") == bool(place):
        raise ConfigError(f"{source}: no data source; there are {', '.join(KINDS)}")
    return kind, place


def package_names(place: str) -> list[str]:
    """Names in a comma-separated list, in the given order."""
    return [name.strip() for name in place.split(",") if name.strip()]


def local_files(source: str) -> list[str]:
    """Local files that `source` reads, none for a remote one; reads no content.

    Raises ConfigError for an unknown kind, a pattern without matches, a missing package.
    """
    kind, place = parse_source(source)
    if kind == "files":
        return [str(file) for file in matching_files(source, place)]
    if kind == "docstrings":
        names = package_names(place)
        if len(names) < 2 or len(set(names)) < len(names):
            raise ConfigError(f"{source}: docstrings needs two or more different packages")
        for name in names:
            package_folder(source, name)
    if kind == "hub":
        parse_place(source, place)
    return []


def libraries(source: str) -> dict[str, str | None]:
    """Versions of the libraries that shape the data, of the packages whose docstrings it is."""
    kind, place = parse_source(source)
    if kind == "docstrings":
        return {name: package_version(name) for name in package_names(place)}
    if kind == "hub":
        return library_versions("datasets")
    if kind == "files":
        suffixes = {table_suffix(file) for file in matching_files(source, place)}
        return library_versions("pandas", *["pyarrow"] * (".parquet" in suffixes))
    return {}
