"""Paths that match a pattern of the configuration."""

from itertools import islice
from pathlib import Path

from tightrope.errors import ConfigError

# a path with one of these characters is a pattern
MAGIC = set("*?[")
MOST_PATHS = 2_000_000


def matching_paths(pattern: str) -> list[Path]:
    """Return the files and folders that `pattern` matches, sorted.

    Raises ConfigError for a pattern that would search the whole machine, one that matches more than
    MOST_PATHS, and one that is none.
    """
    path = home_expanded(pattern, pattern)
    try:
        if not MAGIC & set(pattern):
            return [path] if path.exists() else []
        parts = path.parts[1:] if path.anchor else path.parts
        if path.anchor and parts[:1] == ("**",):
            raise ConfigError(f"{pattern}: searches the whole machine; begin with a folder")
        found = Path(path.anchor).glob(str(path.relative_to(path.anchor)))
        paths = list(islice(found, MOST_PATHS + 1))
    except (OSError, ValueError, NotImplementedError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise ConfigError(f"{pattern[:200]}: no path that can be read ({reason})") from error
    if len(paths) > MOST_PATHS:
        raise ConfigError(f"{pattern}: matches more than {MOST_PATHS:,} paths; narrow the pattern")
    return sorted(paths)


def fixed_part(pattern: str) -> Path:
    """Return the path up to the first wildcard part of the pattern."""
    path = home_expanded(pattern, pattern)
    parts = list(path.parts)
    fixed = next((i for i, part in enumerate(parts) if MAGIC & set(part)), len(parts))
    return Path(*parts[:fixed])


def home_expanded(source: str, path: str) -> Path:
    """Return the path with `~` replaced; raise ConfigError naming `source` without such a home."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{source}: there is no such home folder; write out the path") from error
