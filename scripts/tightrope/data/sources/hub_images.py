"""Labelled images of a dataset on the Hugging Face Hub."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.artifacts.files import read_bytes
from tightrope.artifacts.provenance import library_versions
from tightrope.data.sources import hub_tables
from tightrope.data.sources.hub_tables import fetch_tables, label_index, material_of_parts, roles_of
from tightrope.data.splits import Material, Row
from tightrope.errors import TightropeError

if TYPE_CHECKING:
    from tightrope.data.image_store import ImageStore

local_files = hub_tables.local_files


def libraries(_source: str, _location: str, **_settings: Any) -> dict[str, str | None]:
    """Return versions of the libraries that read, decode and store the images."""
    return library_versions("pillow", "pyarrow", "datasets")


def read(
    source: str, location: str, store: "ImageStore", *, columns: dict[str, str], **_settings: Any
) -> Material:
    """Return images and labels of a Hub dataset."""
    tables, commit = fetch_tables(source, location)
    return images_of(source, tables, columns, store)._replace(revision=commit)


def images_of(source: str, tables: Any, columns: dict[str, str], store: "ImageStore") -> Material:
    """Return Material of a `datasets.DatasetDict` with an image column, without incomplete rows.

    Raises TightropeError for a column that is missing or holds no images, and for a broken image.
    """
    from datasets import Image

    roles = roles_of(source, tables, columns)
    for role, table in roles.items():
        kind = table.features[columns["image"]]
        if not isinstance(kind, Image):
            raise TightropeError(
                f"{source}: column {columns['image']!r} holds {getattr(kind, 'dtype', 'lists')}, "
                "no images; set columns.image of the model to the column that holds images"
            )
        roles[role] = table.cast_column(columns["image"], Image(decode=False))
    labels, index = label_index(roles, columns["label"])
    parts = {
        role: rows_of(f"{source}: {role}", table, index, columns, store)
        for role, table in roles.items()
    }
    return material_of_parts(labels, roles, parts)


def rows_of(
    name: str, table: Any, index: dict[Any, int], columns: dict[str, str], store: "ImageStore"
) -> list[Row]:
    """Return images with label indices; drop rows that lack image or label."""
    rows = []
    for number, row in enumerate(table.select_columns(list(columns.values())), start=1):
        label = index.get(row[columns["label"]])
        image = row[columns["image"]] or {}
        content = image.get("bytes")
        if content is None and image.get("path"):
            content = read_bytes(Path(image["path"]))
        if content and label is not None:
            rows.append((store.add(f"{name} row {number}", content), label))
    return rows
