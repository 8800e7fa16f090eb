"""Write summary.csv: the table of all results."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import write_bytes

# fields of a result and of its accuracy that are not CSV columns
NESTED = ("latency", "executed", "options", "audit", "search")
LISTED = ("flipped",)


def write_csv(results: list[dict[str, Any]], target: Path | str) -> None:
    """Write a row per result and shape, with columns named by dotted JSON path.

    The reasons for noise are joined into one text.
    """
    import pandas

    rows = []
    for result in results:
        flat = without(result, NESTED)
        if result["accuracy"]:
            flat["accuracy"] = without(result["accuracy"], LISTED)
        for shape in result["latency"] or [{}]:
            row = {**flat, **{f"latency.{key}": value for key, value in shape.items()}}
            if shape:
                row["latency.noise"] = "; ".join(shape["noise"])
            rows.append(row)
    frame = pandas.json_normalize(rows).convert_dtypes()
    write_bytes(target, frame.to_csv(index=False).encode())


def without(entry: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return `entry` without the fields in `names`."""
    return {key: value for key, value in entry.items() if key not in names}
