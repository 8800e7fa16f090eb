"""Write summary.csv: the table of all results."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import write_bytes
from tightrope.summary.result_types import LatencyRow, Result

# fields of a result and of its accuracy that are not CSV columns
NESTED = ("latency", "executed", "options", "audit", "search")
LISTED = ("flipped",)
# fields of a latency row that have no column where no row has a value
MEASURED_SOMETIMES = ("energy_j", "gpu", "speedup_over_bf16", "streams")


def write_csv(results: Iterable[Result], target: Path | str) -> None:
    """Write a row per result and shape, with columns named by dotted JSON path.

    The reasons for noise are joined into one text.
    """
    import pandas

    rows = []
    for result in results:
        flat = without(result, NESTED)
        if result["accuracy"]:
            flat["accuracy"] = without(result["accuracy"], LISTED)
        rows += [{**flat, **columns_of(row)} for row in result["latency"]] or [flat]
    frame = pandas.json_normalize(rows).convert_dtypes()
    write_bytes(target, frame.to_csv(index=False).encode())


def columns_of(row: LatencyRow) -> dict[str, Any]:
    """Return the columns of a latency row; those in MEASURED_SOMETIMES only if it has a value."""
    gpu: Mapping[str, Any] = row["gpu"] or {}
    columns = {f"latency.{name}": value for name, value in without(row, MEASURED_SOMETIMES).items()}
    for name in ("energy_j", "speedup_over_bf16"):
        if row[name] is not None:
            columns[f"latency.{name}"] = row[name]
    columns |= {f"latency.gpu.{name}": value for name, value in gpu.items()}
    if gpu:
        columns["latency.gpu.throttled"] = "; ".join(gpu["throttled"] or ())
    return {**columns, "latency.noise": "; ".join(row["noise"])}


def without(entry: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return `entry` without the fields in `names`."""
    return {key: value for key, value in entry.items() if key not in names}
