"""Labelled texts or images of a dataset on the Hugging Face Hub."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.artifacts.files import read_bytes
from tightrope.artifacts.provenance import library_versions
from tightrope.data.splits import Material, Row, in_order
from tightrope.errors import TightropeError
from tightrope.signature import IMAGE
from tightrope.sources.hub import fetching, parse_repository

if TYPE_CHECKING:
    from tightrope.data.image_store import ImageStore

ROLES = {"evaluation": ("validation", "dev", "valid", "test"), "train": ("train",)}
REMEDY = (
    "to use local files instead, give the model data 'files:PATTERN', "
    "for example with --config 'models={NAME: {data: \"files:my/*.tsv\"}}'"
)


def local_files(source: str, location: str, **_settings: Any) -> list[Path]:
    """Return no files; raise ConfigError for an invalid Hub source."""
    parse_repository(source, location)
    return []


def libraries(
    _source: str, _location: str, *, task: str, **_settings: Any
) -> dict[str, str | None]:
    """Return versions of what reads the tables, and decodes and stores their images."""
    return library_versions(*(("pillow", "pyarrow") if task == IMAGE else ()), "datasets")


def read(
    source: str,
    location: str,
    store: "ImageStore | None" = None,
    *,
    columns: dict[str, str],
    **_settings: Any,
) -> Material:
    """Return texts and labels of a Hub dataset; with a `store`, images and labels.

    The revision is the fetched commit. No code of the dataset is run.
    """
    from datasets import load_dataset
    from huggingface_hub import HfApi

    repository = parse_repository(source, location)
    with fetching(source, REMEDY):
        commit = HfApi().dataset_info(repository.name, revision=repository.revision, timeout=30).sha
        tables = load_dataset(repository.name, repository.configuration, revision=commit)
    return material_of(source, tables, columns, store)._replace(revision=str(commit))


def material_of(
    source: str, tables: Any, columns: dict[str, str], store: "ImageStore | None" = None
) -> Material:
    """Return Material of a `datasets.DatasetDict`: texts, or images that go into a `store`.

    Rows without a text, an image or a label (-1 or None) are dropped and counted, because users
    cannot fix data on the Hub. A single table is a pool. Raises TightropeError for a column that is
    missing or holds no texts or images, and for a broken image.
    """
    from datasets import Image

    roles, content = roles_of(source, tables, columns), "text" if store is None else "image"
    for role, table in roles.items():
        kind = table.features[columns[content]]
        name = getattr(kind, "dtype", "lists")
        texts = store is None and name in ("string", "large_string")
        if not (texts or (store is not None and isinstance(kind, Image))):
            raise TightropeError(
                f"{source}: column {columns[content]!r} holds {name}, no {content}s; set "
                f"columns.{content} of the model to the column that holds {content}s"
            )
        if store is not None:
            roles[role] = table.cast_column(columns["image"], Image(decode=False))
    labels, index = label_index(roles, columns["label"])
    parts = {
        role: texts_of(table, index, columns)
        if store is None
        else images_of(f"{source}: {role}", table, index, columns, store)
        for role, table in roles.items()
    }
    left_out = {role: len(roles[role]) - len(rows) for role, rows in parts.items()}
    if len(parts) == 2:
        return Material(labels, parts["train"], parts["evaluation"], left_out=left_out)
    return Material(labels, next(iter(parts.values())), left_out=left_out)


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


def texts_of(table: Any, index: dict[Any, int], columns: dict[str, str]) -> list[Row]:
    """Return stripped texts with label indices; drop rows that lack text or label."""
    pairs = zip(table[columns["text"]], table[columns["label"]], strict=True)
    stripped = (((text or "").strip(), label) for text, label in pairs)
    return [(text, index[label]) for text, label in stripped if text and label in index]


def images_of(
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
