"""How long the operators of a graph take: the costs that the search for int8-auto measures."""

from typing import Any

Document = dict[str, Any]


def slowest_shape(costs: Document | None) -> tuple[Document | None, dict[str, Document]]:
    """The shape at which the operators take longest in float, and the row of each of them there."""
    by_shape: dict[tuple[Any, ...], dict[str, Document]] = {}
    for name, rows in (costs or {}).get("operators", {}).items():
        for row in rows:
            sizes = tuple((key, size) for key, size in row.items() if not key.endswith("_s"))
            by_shape.setdefault(sizes, {})[name] = row
    if not by_shape:
        return None, {}
    sizes = max(by_shape, key=lambda one: sum(row["float_s"] for row in by_shape[one].values()))
    return dict(sizes), by_shape[sizes]


def seconds_of(row: Document | None, precision: str) -> float | None:
    """What the operator of that row of the costs takes, in int8 where it computes so."""
    return row["int8_s" if precision == "int8" else "float_s"] if row else None
