"""Report list on why one profiled variant is faster or slower than another."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.report.style.numbers import milliseconds, shape_of

Record = Mapping[str, Any]


def explanations_by_shape(
    entries: Sequence[Record], hosts: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return `shape` and `rows` for each shape of the explanations, the smallest first.

    A row has `variant`, its `host` where there are several, the `sentences`, and `parts`: group and
    ms of both variants.
    """
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for entry in entries:
        found.setdefault(tuple(shape_of(entry)), []).append(row(entry, hosts))
    shapes = sorted(found, key=lambda shape: [size for _, size in shape])
    return [{"shape": shape, "rows": found[shape]} for shape in shapes]


def row(entry: Record, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return the row of an explanation."""
    return {
        "variant": entry["variant"],
        "host": hosts.get(str(entry["host"])),
        "sentences": entry["sentences"],
        "parts": [
            {
                "group": part["group"],
                "ms": milliseconds(part["seconds"]),
                "against_ms": milliseconds(part["against_s"]),
            }
            for part in entry["parts"]
        ],
    }
