"""Paths that match a pattern of the configuration."""

from pathlib import Path

# a path with one of these characters is a pattern
MAGIC = set("*?[")


def matching_paths(pattern: str) -> list[Path]:
    """Return the files and folders that `pattern` matches, sorted."""
    path = Path(pattern).expanduser()
    if not MAGIC & set(pattern):
        return [path] if path.exists() else []
    return sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
