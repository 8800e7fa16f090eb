"""Where data come from, as a string of the configuration says it; nothing of it is read here."""

from tightrope.errors import ConfigError
from tightrope.provenance import library_versions
from tightrope.sources.files import matching_files
from tightrope.sources.hub import parse_place
from tightrope.sources.image_files import kind_of, listing_digest, matching_images
from tightrope.sources.image_tables import images_place
from tightrope.sources.package import package_folder, package_version
from tightrope.sources.tables import table_suffix
from tightrope.tasks import IMAGE, TEXT

KINDS = {
    TEXT: ("docstrings:packages", "files:pattern", "hub:owner/name@revision", "random"),
    IMAGE: ("digits", "files:pattern", "hub:owner/name@revision", "random"),
}
WITHOUT_PLACE = ("digits", "random")
REMEDY = (
    "to use local files instead, give the model data 'files:PATTERN', "
    "for example with --config 'models={NAME: {data: \"files:my/*.tsv\"}}'"
)


def parse_source(source: str, *, task: str = TEXT) -> tuple[str, str]:
    """Kind and place of a data source; raises ConfigError naming the kinds that the task has."""
    kind, _, place = source.partition(":")
    known = [known.partition(":")[0] for known in KINDS[task]]
    if kind not in known or (kind in WITHOUT_PLACE) == bool(place):
        raise ConfigError(f"{source}: no data source of {task}; there are {', '.join(KINDS[task])}")
    return kind, place


def package_names(place: str) -> list[str]:
    """Names in a comma-separated list, in the given order."""
    return [name.strip() for name in place.split(",") if name.strip()]


def local_files(source: str, *, task: str = TEXT, images: str | None = None) -> list[str]:
    """Local tables and archives that `source` reads, none for a remote one; reads no content.

    Loose images may be too many to be inputs of a job, so `libraries` has a digest of them.
    Raises ConfigError for an unknown kind, a pattern without matches, a missing package.
    """
    kind, place = parse_source(source, task=task)
    if images is not None and (kind, task) != ("files", IMAGE):
        raise ConfigError(f"images = {images}: only a table of images (files:...) has this key")
    if kind == "files" and task == IMAGE:
        return image_files(source, place, images)
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


def image_files(source: str, pattern: str, images: str | None) -> list[str]:
    """The tables and archives among what an image source reads."""
    paths = matching_images(source, pattern)
    files = [path for path in paths if kind_of(path) in ("archive", "table")]
    if kind_of(paths[0]) == "table":
        places = [images_place(table, images) for table in files]
        files += [place for place in places if place.is_file()]
    elif images is not None:
        raise ConfigError(f"images = {images}: only tables name images; {source} has none")
    return [str(file) for file in dict.fromkeys(files)]


def libraries(source: str, *, task: str = TEXT, images: str | None = None) -> dict[str, str | None]:
    """Versions of what shapes the data: libraries, packages of docstrings, and loose images."""
    kind, place = parse_source(source, task=task)
    if kind == "docstrings":
        return {name: package_version(name) for name in package_names(place)}
    if kind == "random":
        return {}
    if task == IMAGE:
        return image_libraries(source, kind, place, images)
    if kind == "hub":
        return library_versions("datasets")
    suffixes = {table_suffix(file) for file in matching_files(source, place)}
    return library_versions("pandas", *["pyarrow"] * (".parquet" in suffixes))


def image_libraries(
    source: str, kind: str, place: str, images: str | None
) -> dict[str, str | None]:
    """The same of images: how they are decoded and stored, and what was found."""
    own = {"digits": ["scikit-learn"], "hub": ["datasets"]}.get(kind, [])
    versions = library_versions("pillow", "pyarrow", *own)
    if kind != "files":
        return versions
    paths = matching_images(source, place)
    if kind_of(paths[0]) == "table":
        versions |= library_versions("pandas")
        paths = [images_place(table, images) for table in paths]
    loose = [path for path in dict.fromkeys(paths) if kind_of(path) in ("folder", "image")]
    return versions | ({"images": listing_digest(loose)} if loose else {})
