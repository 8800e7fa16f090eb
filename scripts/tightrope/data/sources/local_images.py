"""Labelled local images in class folders, loose or in archives, or in tables."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from tightrope.artifacts.files import digest, read_bytes
from tightrope.artifacts.provenance import library_versions
from tightrope.data.splits import (
    NUMBER,
    POOL,
    Labelled,
    Material,
    number_labels,
    role_of,
    train_and_evaluation,
)
from tightrope.errors import ConfigError, TightropeError
from tightrope.sources.local import (
    fixed_part,
    home_expanded,
    is_archive,
    matching_paths,
    read_archive,
)
from tightrope.sources.tables import ROWS, TABLES, excerpt, read_columns, table_suffix

if TYPE_CHECKING:
    from tightrope.data.image_store import ImageStore

SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".pbm", ".pnm"),
)
# a folder inside each class folder, as in Tiny ImageNet
INNER = "images"
Reader = Callable[[], bytes]
# allowed matches, for error messages
ALLOWED = "a folder of class folders, an archive of them (.zip, .tar, .tar.gz), images or a table"


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


def libraries(
    source: str, location: str, *, images: str | None, **_settings: Any
) -> dict[str, Any]:
    """Return versions of decoding and storing libraries, and a digest of loose images.

    It is of names, sizes and times of every file, to detect changes: they may be too many for
    inputs of a rule.
    """
    versions = library_versions("pillow", "pyarrow")
    paths = matching_images(source, location)
    of_table = kind_of(paths[0]) == "table"
    if of_table:
        versions |= library_versions("pandas")
        paths = [images_location(table, images) for table in paths]
    loose = [path for path in dict.fromkeys(paths) if kind_of(path) in ("folder", "image")]
    links = Links.of(location, None if of_table else images)
    entries = []
    for top in loose:
        walk = top.is_dir() and links.target(top) is None
        for path in files_below(top, links) if walk else [top]:
            # a broken link is an error only when it is read
            status = path.stat() if path.exists() else path.lstat()
            time = 0 if path.is_dir() else status.st_mtime_ns
            entries.append((str(path), status.st_size, time))
    return versions | ({"images": digest(entries)} if loose else {})


@dataclass(frozen=True)
class Links:
    """The folders to which links may lead; data stores such as DVC consist of links.

    They are the folder that the configuration names, the folder of the run, and what `images` of
    the model names. Elsewhere a link of another's making, as an archive may hold it, could show any
    image of this machine.
    """

    named: Path
    folders: tuple[Path, ...]

    @classmethod
    def of(cls, pattern: str, images: str | None) -> "Links":
        """Return the folders for a pattern; raise ConfigError where `images` is no folder."""
        named = fixed_part(pattern)
        folders = [named, Path.cwd()]
        if images is not None:
            folders.append(home_expanded(f"images = {images}", images))
            if not folders[-1].is_dir():
                raise ConfigError(
                    f"images = {images}: no folder that links could lead to; only tables and links "
                    "name images elsewhere"
                )
        return cls(named, tuple(folder.resolve() for folder in folders))

    def require_inside(self, path: Path) -> None:
        """Raise TightropeError where a path is a link to a place outside of these folders."""
        target = self.target(path)
        if target is not None:
            raise TightropeError(
                f"{path}: a link to {target}, which is outside of {self.named} and of the folder "
                "of the run; copy what it leads to, or set `images` of the model to the folder "
                "that links may lead to"
            )

    def target(self, path: Path) -> Path | None:
        """Return where a link outside of these folders leads; None for any other path."""
        if path == self.named or not path.is_symlink():
            return None
        try:
            target = path.resolve()
        except (OSError, RuntimeError):  # a link to itself, which cannot be read
            return None
        return None if any(map(target.is_relative_to, self.folders)) else target


def matching_images(source: str, pattern: str) -> list[Path]:
    """Return the tables, archives, folders or images that `pattern` matches, all of one kind.

    Raises ConfigError naming `source` for no match, another kind of file, or several kinds.
    """
    paths = [path for path in matching_paths(pattern) if not is_hidden(path)]
    if not paths:
        raise ConfigError(f"{source}: no file matches; give {ALLOWED}")
    kinds = {kind_of(path): path for path in paths}
    if "" in kinds:
        raise ConfigError(f"{kinds['']}: no image; {source} may match {ALLOWED}")
    if len(kinds) > 1:
        first, second, *_ = kinds.values()
        raise ConfigError(
            f"{source}: matches {first} and {second}, which are of two kinds; narrow the pattern"
        )
    return paths


def kind_of(path: Path) -> str:
    """Return folder, archive, table or image by the name of the path, else an empty string."""
    if path.is_dir():
        return "folder"
    if is_archive(path):
        return "archive"
    if table_suffix(path) in TABLES:
        return "table"
    return "image" if path.suffix.lower() in SUFFIXES else ""


def is_hidden(path: Path) -> bool:
    """Whether the name belongs to a hidden file or to metadata that programs write."""
    return path.name.startswith((".", "__MACOSX"))


def read_class_folders(
    source: str, pattern: str, store: "ImageStore", images: str | None
) -> Material:
    """Read every image that `pattern` matches or that is inside a match.

    The class of an image is its folder, or the parent if the folder is called `images`. The split
    comes from the nearest folder above the class, or the archive, whose name has a word for a
    split. Raises TightropeError for a folder without images, for an image outside class folders,
    for a link that leads elsewhere (see `Links`), and whatever `ImageStore.add` raises.
    """
    paths = matching_images(source, pattern)
    base = fixed_part(pattern)
    # a folder that a wildcard matches is no root: it is a class or holds classes
    roots = [path for path in paths if kind_of(path) == "archive" or path == base]
    roles: dict[str, list[Labelled]] = {}
    folders, filled, left_out = set[Path](), set[Path](), Counter[str]()
    for path, read in every_file(paths, Links.of(pattern, images)):
        if read is None:
            folders.add(path)
            continue
        if path.suffix.lower() not in SUFFIXES:
            left_out[role_of_folders(path.parent, base)] += 1
            continue
        # the folder whose name is the class of the image
        group = path.parent.parent if path.parent.name == INNER else path.parent
        if group in roots:
            raise TightropeError(
                f"{path}: lies in no class folder; put the images of each class into a folder of "
                "its name, or give a table of files and labels"
            )
        filled.update(path.parents)
        row = (store.add(str(path), read()), group.name)
        roles.setdefault(role_of_folders(group.parent, base), []).append(row)
    for folder in sorted(folders - filled):
        raise TightropeError(f"{folder}: a folder without images; fill it or take it out")
    # a folder test beside train/cat, or beside train alone, is no class
    flat = [row for row in roles.get(POOL, []) if role_of(row[1]) != POOL]
    if flat and (len(roles) > 1 or len(flat) == len(roles[POOL])):
        why = f"lies in no class folder of {flat[0][1]}; put it into one, or take it out"
        raise TightropeError(f"{flat[0][0].name}: {why}")
    for rows in roles.values():
        # each kind of archive yields its files in a different order
        rows.sort(key=lambda row: row[0].name)
    train, evaluation = train_and_evaluation(source, roles, lambda row: row[0].name)
    judged = left_out["evaluation"] if "evaluation" in roles else left_out["test"]
    lost = {"train": left_out["train"], "evaluation": judged}
    return number_labels(train, evaluation)._replace(
        left_out=left_out if evaluation is None else lost
    )


def role_of_folders(folder: Path, base: Path) -> str:
    """Return the split named by `folder` or its nearest parent below `base`."""
    names = folder.relative_to(base).parts if folder.is_relative_to(base) else ()
    return next((role for name in reversed(names) if (role := role_of(name)) != POOL), POOL)


def every_file(paths: list[Path], links: Links) -> Iterator[tuple[Path, Reader | None]]:
    """Yield the path of each file with a function that reads it, None for a folder.

    Archive members are paths below the archive's path. Hidden files are skipped. Raises
    TightropeError for a link that leads elsewhere.
    """
    for path in paths:
        links.require_inside(path)
        if path.is_dir():
            for file in files_below(path, links):
                links.require_inside(file)
                yield file, None if file.is_dir() else reader_of(file)
        elif is_archive(path):
            for name, read in read_archive(path):
                if not any(map(is_hidden, (Path(name), *Path(name).parents[:-1]))):
                    yield path / name, read
        else:
            yield path, reader_of(path)


def files_below(top: Path, links: Links, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Yield `top` and all folders and files below it, sorted, without hidden ones; follow links.

    Not a link to a folder that contains it, nor one that leads elsewhere, which is yielded.
    """
    resolved = top.resolve()
    if resolved in above:
        return
    yield top
    for path in sorted(top.iterdir()):
        if is_hidden(path):
            continue
        if path.is_dir() and links.target(path) is None:
            yield from files_below(path, links, (*above, resolved))
        else:
            yield path


def reader_of(path: Path) -> Reader:
    """Return a function that reads the file and raises TightropeError if it is too large."""

    def read() -> bytes:
        from tightrope.data.image_store import LARGEST_BYTES, check_size

        check_size(str(path), path.stat().st_size if path.exists() else 0)
        return read_bytes(path, LARGEST_BYTES)

    return read


class Row(NamedTuple):
    """A table row: its position for errors, its file name or image bytes, and its label."""

    name: str
    content: str | bytes
    label: Any


def read(
    source: str, pattern: str, store: "ImageStore", *, columns: dict[str, str], images: str | None
) -> Material:
    """Read the images in all that `pattern` matches: class folders, or every row of tables.

    File names are relative to the table's folder, or to `images`, a folder or archive given
    relative to the table. For an archive member, leading folders may be omitted if the rest is
    unambiguous. The split comes from the folders above an image, else from the table's name. Raises
    TightropeError naming table and row for an image that is missing, named twice, broken or outside
    that folder, and for a label below 0.
    """
    tables = matching_images(source, pattern)
    if kind_of(tables[0]) != "table":
        return read_class_folders(source, pattern, store, images)
    roles: dict[str, list[Labelled]] = {}
    for table in tables:
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
            # a table of another's making must not choose any image of this machine; links inside
            # the folder are its owner's, so they are followed
            inside = Path(os.path.normpath(file.absolute()))
            if not inside.is_relative_to(os.path.normpath(location.absolute())):
                raise TightropeError(
                    f"{named[path].name} names {path}, which leads out of {location}; set `images` "
                    "of the model to the folder that holds its images"
                )
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
