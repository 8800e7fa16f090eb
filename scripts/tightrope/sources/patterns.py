"""Paths that a pattern of the configuration matches."""

from pathlib import Path

# with one of these a path is a pattern
MAGIC = set("*?[")


def matching_paths(pattern: str) -> list[Path]:
    """The files and folders that `pattern` matches, sorted."""
    path = Path(pattern).expanduser()
    if not MAGIC & set(pattern):
        return [path] if path.exists() else []
    return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
