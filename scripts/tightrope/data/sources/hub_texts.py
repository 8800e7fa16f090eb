"""Labelled texts of a dataset on the Hugging Face Hub."""

from typing import Any

from tightrope.artifacts.provenance import library_versions
from tightrope.data.sources import hub_tables
from tightrope.data.sources.hub_tables import fetch_tables, label_index, material_of_parts, roles_of
from tightrope.data.splits import Material, Row
from tightrope.errors import TightropeError

local_files = hub_tables.local_files


def libraries(_source: str, _location: str, **_settings: Any) -> dict[str, str | None]:
    """Return the version of datasets, which reads the texts."""
    return library_versions("datasets")


def read(source: str, location: str, *, columns: dict[str, str], **_settings: Any) -> Material:
    """Return texts and labels of a Hub dataset."""
    tables, commit = fetch_tables(source, location)
    return material_of(source, tables, columns)._replace(revision=commit)


def material_of(source: str, tables: Any, columns: dict[str, str]) -> Material:
    """Return Material of a `datasets.DatasetDict` with a text column.

    Rows without a text or a label (-1 or None) are dropped and counted, because users cannot fix
    data on the Hub. Raises TightropeError for a column that is missing or holds no texts.
    """
    roles = roles_of(source, tables, columns)
    for table in roles.values():
        kind = getattr(table.features[columns["text"]], "dtype", "lists")
        if kind not in ("string", "large_string"):
            raise TightropeError(
                f"{source}: column {columns['text']!r} holds {kind}, no texts; set columns.text of "
                "the model to the column that holds texts"
            )
    labels, index = label_index(roles, columns["label"])
    parts = {role: rows_of(table, index, columns) for role, table in roles.items()}
    return material_of_parts(labels, roles, parts)


def rows_of(table: Any, index: dict[Any, int], columns: dict[str, str]) -> list[Row]:
    """Return stripped texts with label indices; drop rows that lack text or label."""
    pairs = zip(table[columns["text"]], table[columns["label"]], strict=True)
    stripped = (((text or "").strip(), label) for text, label in pairs)
    return [(text, index[label]) for text, label in stripped if text and label in index]
