"""Report table on why one profiled variant is faster or slower than another."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.report.style.numbers import milliseconds, shape_of

Record = Mapping[str, Any]


def explanation_rows(entries: Sequence[Record], hosts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a row per explanation, in the order of the shapes.

    Each has `variant`, `against`, its `host` where there are several, `shape`, `saved_ms`, the
    `sentences`, and `parts`: group, ms of both, and what is saved.
    """
    rows = [row(entry, hosts) for entry in entries]
    return sorted(rows, key=lambda one: [size for _, size in one["shape"]])


def row(entry: Record, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return the row of an explanation."""
    return {
        "variant": entry["variant"],
        "against": entry["against"],
        "host": hosts.get(str(entry["host"])),
        "shape": shape_of(entry),
        "saved_ms": milliseconds(entry["saved_s"]),
        "sentences": entry["sentences"],
        "parts": [
            {
                "group": part["group"],
                "ms": milliseconds(part["seconds"]),
                "against_ms": milliseconds(part["against_s"]),
                "saved_ms": milliseconds(part["saved_s"]),
            }
            for part in entry["parts"]
        ],
    }
