"""Labelled images in local files: class folders, loose or in archives."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tightrope.artifacts.files import digest, read_bytes
from tightrope.data.material import (
    POOL,
    Labelled,
    Material,
    labelled,
    role_of,
    train_and_evaluation,
)
from tightrope.errors import ConfigError, TightropeError
from tightrope.sources.archives import is_archive, read_archive
from tightrope.sources.patterns import MAGIC, matching_paths
from tightrope.sources.tables import TABLES, table_suffix

if TYPE_CHECKING:
    from tightrope.data.image_store import ImageStore

SUFFIXES = (
    *(".jpg", ".jpeg", ".jpe", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".pbm", ".pnm"),
)
# a folder within those of the classes, as Tiny ImageNet has them
INNER = "images"
Reader = Callable[[], bytes]
# the words of errors on what may be matched
ALLOWED = "a folder of class folders, an archive of them (.zip, .tar, .tar.gz), images or a table"


def matching_images(source: str, pattern: str) -> list[Path]:
    """The tables, archives, folders or images that `pattern` matches, of one of these kinds.

    Raises ConfigError naming `source` for none, for something else and for several kinds.
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
    """folder, archive, table or image by the name of the path, else nothing."""
    if path.is_dir():
        return "folder"
    if is_archive(path):
        return "archive"
    if table_suffix(path) in TABLES:
        return "table"
    return "image" if is_image(path) else ""


def is_image(path: Path) -> bool:
    """Whether its name says that it is one."""
    return path.suffix.lower() in SUFFIXES


def is_hidden(path: Path) -> bool:
    """Whether the name is one of those that programs make for themselves."""
    return path.name.startswith((".", "__MACOSX"))


def read_class_folders(source: str, pattern: str, store: "ImageStore") -> Material:
    """Every image that `pattern` matches or that lies in what it matches.

    Its class is its folder, or where that is called `images` the one above. The nearest folder
    above the class, or the archive, whose name has a word for a split says which it belongs to.
    Raises TightropeError for a folder without images and for an image that lies in no class
    folder, and what `ImageStore.add` raises.
    """
    paths = matching_images(source, pattern)
    base = fixed_part(pattern)
    # with a pattern each folder that it matches is a class or holds classes
    roots = [path for path in paths if kind_of(path) == "archive" or path == base]
    roles: dict[str, list[Labelled]] = {}
    folders: set[Path] = set()
    filled: set[Path] = set()
    left_out = 0
    for path, read in every_file(paths):
        if read is None:
            folders.add(path)
            continue
        if not is_image(path):
            left_out += 1
            continue
        group = class_folder(path)
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
    for rows in roles.values():
        # as files come in an order of their own from each kind of archive
        rows.sort(key=lambda row: row[0].name)
    train, evaluation = train_and_evaluation(source, roles, lambda row: row[0].name)
    return labelled(train, evaluation)._replace(left_out=left_out)


def class_folder(image: Path) -> Path:
    """The folder whose name is the class of the image."""
    folder = image.parent
    return folder.parent if folder.name == INNER else folder


def fixed_part(pattern: str) -> Path:
    """The path up to the first part of the pattern that matches more than one name."""
    path = Path(pattern).expanduser()
    parts = list(path.parts)
    fixed = next((i for i, part in enumerate(parts) if MAGIC & set(part)), len(parts))
    return Path(*parts[:fixed])


def role_of_folders(folder: Path, base: Path) -> str:
    """The split named by `folder` or by the nearest above it, as far as they lie in `base`."""
    names = folder.relative_to(base).parts if folder.is_relative_to(base) else ()
    return next((role for name in reversed(names) if (role := role_of(name)) != POOL), POOL)


def every_file(paths: list[Path]) -> Iterator[tuple[Path, Reader | None]]:
    """The path of each file with a function that reads it, None for a folder.

    Files of an archive are paths below the archive's. Hidden files are left out.
    """
    for path in paths:
        if path.is_dir():
            below = files_below(path)
            yield from ((one, None if one.is_dir() else reader_of(one)) for one in below)
        elif is_archive(path):
            for name, read in read_archive(path):
                if not any(map(is_hidden, (Path(name), *Path(name).parents[:-1]))):
                    yield path / name, read
        else:
            yield path, reader_of(path)


def files_below(top: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """`top` and every folder and file below it, sorted, but hidden ones; links are followed.

    A link to a folder that it lies in is left out.
    """
    place = top.resolve()
    if place in above:
        return
    yield top
    for path in sorted(top.iterdir()):
        if is_hidden(path):
            continue
        if path.is_dir():
            yield from files_below(path, (*above, place))
        else:
            yield path


def reader_of(path: Path) -> Reader:
    """A function that reads the file; raises TightropeError for one that is too large."""

    def read() -> bytes:
        from tightrope.data.image_store import check_size

        check_size(str(path), path.stat().st_size if path.exists() else 0)
        return read_bytes(path)

    return read


def listing_digest(paths: list[Path]) -> str:
    """A digest of names, sizes and times of every file below `paths`, to notice a change.

    It stands for the files where they are too many to be inputs of a rule.
    """
    found = []
    for top in paths:
        for path in files_below(top) if top.is_dir() else [top]:
            # a link that leads nowhere is an error when it is read
            status = path.stat() if path.exists() else path.lstat()
            time = 0 if path.is_dir() else status.st_mtime_ns
            found.append((str(path), status.st_size, time))
    return digest(found)
