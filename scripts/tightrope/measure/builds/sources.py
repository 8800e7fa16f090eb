"""Names of the inputs of a build among those of a job that measures too."""

from collections.abc import Iterable

PREFIX = "build_"


def sources_of(inputs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the inputs of a build among those of a job, by their names in the build's rule."""
    return {name.removeprefix(PREFIX): path for name, path in inputs if name.startswith(PREFIX)}
