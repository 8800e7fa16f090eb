"""Installed distributions and what they need, from their metadata."""

from collections.abc import Iterable
from importlib.metadata import distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

LONGEST = 60


def closure(requirements: Iterable[Requirement]) -> dict[str, str]:
    """Return name and public version of each requirement and of all that it needs.

    Raises PackageNotFoundError where a distribution is not installed, ValueError where its version
    is another.
    """
    found: dict[str, str] = {}
    seen, todo = set(), list(requirements)
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        if (wanted := (name, *sorted(requirement.extras))) in seen:
            continue
        seen.add(wanted)
        installed = distribution(name)
        if not requirement.specifier.contains(installed.version, prereleases=True):
            raise ValueError(f"{name} {installed.version} is installed, {requirement} is asked for")
        found[name] = Version(installed.version).public  # torch: no local suffix such as +cpu
        needed = [Requirement(text) for text in installed.requires or []]
        for extra in requirement.extras | {""}:
            todo += [n for n in needed if not n.marker or n.marker.evaluate({"extra": extra})]
    return found


def licence_of(name: str) -> str | None:
    """Return the licence that an installed distribution states, None where it states none."""
    metadata = distribution(name).metadata.json
    if stated := metadata.get("license_expression"):
        return str(stated)
    classifiers = metadata.get("classifier", [])
    named = [str(one).split(" :: ")[-1] for one in classifiers if one.startswith("License ::")]
    # some give the whole text
    first = str(metadata.get("license", "")).strip().partition("\n")[0]
    return ", ".join(named) or (first if 0 < len(first) <= LONGEST else None)
