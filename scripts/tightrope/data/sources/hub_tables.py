"""Data sets of the Hugging Face hub, of texts or of images."""

from pathlib import Path
from typing import Any

from tightrope.data.material import Material, Row
from tightrope.errors import TightropeError
from tightrope.sources.hub import check_reachable, failed, parse_place

ROLES = {"evaluation": ("validation", "dev", "valid", "test"), "train": ("train",)}
REMEDY = (
    "to use local files instead, give the model data 'files:PATTERN', "
    "for example with --config 'models={NAME: {data: \"files:my/*.tsv\"}}'"
)


def local_files(source: str, place: str, **_settings: Any) -> list[Path]:
    """None; raises ConfigError where the place is not written as one of the hub."""
    parse_place(source, place)
    return []


def fetch_tables(source: str, place: str) -> tuple[Any, str]:
    """The `datasets.DatasetDict` and the commit that was fetched, without running code of it."""
    from datasets import load_dataset
    from huggingface_hub import HfApi

    wanted = parse_place(source, place)
    check_reachable(source, REMEDY)
    try:
        commit = HfApi().dataset_info(wanted.name, revision=wanted.revision, timeout=30).sha
        tables = load_dataset(wanted.name, wanted.configuration, revision=commit)
    except Exception as error:
        raise failed(source, error, REMEDY) from error
    return tables, str(commit)


def roles_of(source: str, tables: Any, columns: dict[str, str]) -> dict[str, Any]:
    """The tables for train and evaluation, or one of the two; each has all of `columns`."""
    named = {
        role: next((name for name in names if name in tables), None)
        for role, names in ROLES.items()
    }
    roles = {role: tables[name] for role, name in named.items() if name}
    if not roles:
        raise TightropeError(f"{source}: no train or validation split, only {', '.join(tables)}")
    for table in roles.values():
        for column in columns.values():
            if column not in table.features:
                keys = " and ".join(f"columns.{name}" for name in columns)
                raise TightropeError(
                    f"{source}: has no column {column!r}, only {', '.join(table.features)}; "
                    f"set {keys} of the model"
                )
    return roles


def label_index(roles: dict[str, Any], column: str) -> tuple[list[str], dict[Any, int]]:
    """Names of the labels, the data set's own or the sorted values; the index of each value."""
    names = getattr(next(iter(roles.values())).features[column], "names", None)
    if names:
        return list(names), {number: number for number in range(len(names))}
    values = {value for table in roles.values() for value in table.unique(column)}
    ordered = sorted(value for value in values if value not in (None, -1))
    return [str(value) for value in ordered], {value: i for i, value in enumerate(ordered)}


def material_of_parts(
    labels: list[str], roles: dict[str, Any], parts: dict[str, list[Row]]
) -> Material:
    """Material of the rows that were kept of each table; one table alone is a pool."""
    left_out = sum(map(len, roles.values())) - sum(map(len, parts.values()))
    if len(parts) == 2:
        return Material(labels, parts["train"], parts["evaluation"], left_out=left_out)
    return Material(labels, next(iter(parts.values())), left_out=left_out)
