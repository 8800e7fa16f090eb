"""Datasets of the Hugging Face Hub, for texts or images."""

from pathlib import Path
from typing import Any

from tightrope.data.splits import Material, Row, in_order
from tightrope.errors import TightropeError
from tightrope.sources.hub import check_reachable, fetch_error, parse_repository

ROLES = {"evaluation": ("validation", "dev", "valid", "test"), "train": ("train",)}
REMEDY = (
    "to use local files instead, give the model data 'files:PATTERN', "
    "for example with --config 'models={NAME: {data: \"files:my/*.tsv\"}}'"
)


def local_files(source: str, location: str, **_settings: Any) -> list[Path]:
    """Return no files; raise ConfigError for an invalid Hub source."""
    parse_repository(source, location)
    return []


def fetch_tables(source: str, location: str) -> tuple[Any, str]:
    """Return the `datasets.DatasetDict` and the fetched commit; runs no code of the dataset."""
    from datasets import load_dataset
    from huggingface_hub import HfApi

    repository = parse_repository(source, location)
    check_reachable(source, REMEDY)
    try:
        commit = HfApi().dataset_info(repository.name, revision=repository.revision, timeout=30).sha
        tables = load_dataset(repository.name, repository.configuration, revision=commit)
    except Exception as error:
        raise fetch_error(source, error, REMEDY) from error
    return tables, str(commit)


def roles_of(source: str, tables: Any, columns: dict[str, str]) -> dict[str, Any]:
    """Return the tables for train and evaluation, or one of them; each has all `columns`."""
    split_names = {
        role: next((name for name in names if name in tables), None)
        for role, names in ROLES.items()
    }
    roles = {role: tables[name] for role, name in split_names.items() if name}
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
    """Return label names (the dataset's, else the values in order) and the index of each value."""
    names = getattr(next(iter(roles.values())).features[column], "names", None)
    if names:
        return list(names), {number: number for number in range(len(names))}
    values = {value for table in roles.values() for value in table.unique(column)}
    known = [value for value in values if value not in (None, -1)]
    ordered = in_order({str(value) for value in known})
    return ordered, {value: ordered.index(str(value)) for value in known}


def material_of_parts(
    labels: list[str], roles: dict[str, Any], parts: dict[str, list[Row]]
) -> Material:
    """Return Material of the kept rows of each table; a single table is a pool."""
    left_out = {role: len(roles[role]) - len(rows) for role, rows in parts.items()}
    if len(parts) == 2:
        return Material(labels, parts["train"], parts["evaluation"], left_out=left_out)
    return Material(labels, next(iter(parts.values())), left_out=left_out)
