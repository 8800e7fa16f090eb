"""Labelled local images in class folders, archives or tables."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.artifacts.provenance import library_versions
from tightrope.data.material import Material
from tightrope.data.sources.image_folders import (
    kind_of,
    listing_digest,
    matching_images,
    read_class_folders,
)
from tightrope.data.sources.image_links import Links
from tightrope.data.sources.image_tables import images_location, read_image_tables

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
