"""Labelled local images in class folders, archives or tables."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from tightrope.artifacts.provenance import library_versions
from tightrope.data.material import (
    NUMBER,
    POOL,
    Labelled,
    Material,
    number_labels,
    role_of,
    train_and_evaluation,
)
from tightrope.data.sources.image_folders import (
    Links,
    kind_of,
    listing_digest,
    matching_images,
    read_class_folders,
    reader_of,
    role_of_folders,
)
from tightrope.errors import ConfigError, TightropeError
from tightrope.sources.archives import is_archive, read_archive
from tightrope.sources.local import home_expanded
from tightrope.sources.tables import ROWS, excerpt, read_columns

if TYPE_CHECKING:
    from tightrope.data.image_store import ImageStore


def local_files(source: str, location: str, *, images: str | None) -> list[Path]:
    """Return the tables and archives that the source reads."""
    paths = matching_images(source, location)
    files = [path for path in paths if kind_of(path) in ("archive", "table")]
    if kind_of(paths[0]) == "table":
        locations = [images_location(table, images) for table in files]
        files += [location for location in locations if location.is_file()]
    else:
        Links.of(location, images)
    return list(dict.fromkeys(files))


def libraries(source: str, location: str, *, images: str | None) -> dict[str, Any]:
    """Return versions of decoding and storing libraries, and a digest of loose images."""
    versions = library_versions("pillow", "pyarrow")
    paths = matching_images(source, location)
    of_table = kind_of(paths[0]) == "table"
    if of_table:
        versions |= library_versions("pandas")
        paths = [images_location(table, images) for table in paths]
    loose = [path for path in dict.fromkeys(paths) if kind_of(path) in ("folder", "image")]
    links = Links.of(location, None if of_table else images)
    return versions | ({"images": listing_digest(loose, links)} if loose else {})


def read(
    source: str, location: str, store: "ImageStore", *, columns: dict[str, str], images: str | None
) -> Material:
    """Read all images of the source, by the kind of file that the pattern matches."""
    if kind_of(matching_images(source, location)[0]) == "table":
        return read_image_tables(source, location, store, columns=columns, images=images)
    return read_class_folders(source, location, store, images)


class Row(NamedTuple):
    """A table row: its position for errors, its file name or image bytes, and its label."""

    name: str
    content: str | bytes
    label: Any


def read_image_tables(
    source: str, pattern: str, store: "ImageStore", *, columns: dict[str, str], images: str | None
) -> Material:
    """Read the images of every row of the tables that `pattern` matches.

    File names are relative to the table's folder, or to `images`, a folder or archive given
    relative to the table. For an archive member, leading folders may be omitted if the rest is
    unambiguous. The split comes from the folders above an image, else from the table's name. Raises
    TightropeError naming table and row for an image that is missing, named twice, broken or outside
    that folder, and for a label below 0.
    """
    roles: dict[str, list[Labelled]] = {}
    for table in matching_images(source, pattern):
        for role, row in read_table_images(table, store, columns, images):
            roles.setdefault(role, []).append(row)
    train, evaluation = train_and_evaluation(source, roles, lambda row: row[0].name)
    return number_labels(train, evaluation)


def images_location(table: Path, images: str | None) -> Path:
    """Return the folder or archive with a table's images; raise ConfigError if there is none."""
    location = table.parent / home_expanded(f"images = {images}", images or ".")
    if location.is_dir() or (location.is_file() and is_archive(location)):
        return location
    raise ConfigError(
        f"images = {images}: no folder and no archive (.zip, .tar, .tar.gz) at {location}; it is "
        f"looked for beside {table}"
    )


def read_table_images(
    table: Path, store: "ImageStore", columns: dict[str, str], images: str | None
) -> Iterator[tuple[str, Labelled]]:
    """Yield split, image and label of each row of a table, in row order."""
    rows = list(table_rows(table, columns))
    location = images_location(table, images)
    named: dict[PurePosixPath, Row] = {}
    for row in rows:
        if isinstance(row.content, str):
            other = named.setdefault(PurePosixPath(row.content), row)
            if other is not row:
                raise TightropeError(f"{row.name} names {row.content}, as {other.name} does")
    if is_archive(location):
        stored = {path: store.add(name, read()) for path, name, read in members(location, named)}
    else:
        files = {path: location / path for path in named}
        for path, file in files.items():
            require_within(location, file, f"{named[path].name} names {path}")
            if not file.is_file():
                raise TightropeError(f"{named[path].name} names {path}: there is no file {file}")
        stored = {path: store.add(str(file), reader_of(file)()) for path, file in files.items()}
    for row in rows:
        if isinstance(row.content, bytes):
            yield role_of(table.name), (store.add(row.name, row.content), row.label)
            continue
        image = stored.get(PurePosixPath(row.content))
        if image is None:
            raise TightropeError(f"{row.name} names {row.content}, which is not in {location}")
        role = role_of_folders(Path(image.name).parent, location)
        yield role if role != POOL else role_of(table.name), (image, row.label)


def require_within(folder: Path, file: Path, words: str) -> None:
    """Raise TightropeError, beginning with `words`, where `file` does not lie below `folder`.

    A table of another's making must not choose any image of this machine. Links inside the folder
    are its owner's, so they are followed.
    """
    inside = Path(os.path.normpath(file.absolute()))
    if not inside.is_relative_to(os.path.normpath(folder.absolute())):
        raise TightropeError(
            f"{words}, which leads out of {folder}; set `images` of the model to the folder that "
            "holds its images"
        )


def table_rows(table: Path, columns: dict[str, str]) -> Iterator[Row]:
    """Yield every row; raise TightropeError if it has no file name or image, or a label < 0."""
    values, labels = read_columns(table, columns)
    for number, (value, label) in enumerate(zip(values.tolist(), labels, strict=True), start=1):
        name = f"{table}: row {number} {ROWS}"
        if isinstance(value, dict):
            value = value.get("bytes") or value.get("path")
        if not isinstance(value, str | bytes):
            raise TightropeError(
                f"{name}: column {columns['image']!r} holds {excerpt(value)}, no file name; set "
                "columns.image of the model to the column of file names"
            )
        if NUMBER.fullmatch(str(label)) and int(label) < 0:
            raise TightropeError(f"{name}: label {label}; a class has a number from 0 or a name")
        yield Row(name, value.strip() if isinstance(value, str) else value, label)


def members(
    archive: Path, named: dict[PurePosixPath, Row]
) -> Iterator[tuple[PurePosixPath, str, Callable[[], bytes]]]:
    """Yield key in `named`, full name and reader of each archive member that `named` refers to."""
    matched: dict[PurePosixPath, str] = {}
    for name, read in read_archive(archive):
        parts = PurePosixPath(name).parts
        endings = (PurePosixPath(*parts[start:]) for start in range(len(parts)))
        path = next((ending for ending in endings if ending in named), None)
        if read is None or path is None:
            continue
        if path in matched:
            raise TightropeError(
                f"{named[path].name} names {path}, and {matched[path]} and {name} of {archive} end "
                "so; write the whole name"
            )
        matched[path] = name
        yield path, f"{archive}/{name}", read
