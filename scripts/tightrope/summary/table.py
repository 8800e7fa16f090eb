"""Write summary.csv: the table of all results."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import write_bytes
from tightrope.summary.decision_types import Cost
from tightrope.summary.goal import key_of
from tightrope.summary.result_types import LatencyRow, Result, Shape
from tightrope.summary.results import shape_of

# fields of a result and of its accuracy that are not CSV columns
NESTED = ("latency", "executed", "options", "search")
LISTED = ("flipped",)
# fields of a latency row that have no column where no row has a value
MEASURED_SOMETIMES = ("energy_j", "gpu", "streams")
# fields of a cost that the row of its result has already
TOLD = ("model", "variant", "host", "shape", "build_s")


def write_csv(results: Iterable[Result], costs: Iterable[Cost], target: Path | str) -> None:
    """Write a row per result and shape, with columns named by dotted JSON path.

    Its cost is in the columns `cost.*`. The reasons for noise are joined into one text. What is not
    known is an empty cell.
    """
    costs_by_row = {row_key(one, one["shape"]): one for one in costs}
    rows = []
    for result in results:
        known = without(result, NESTED)
        if result["accuracy"]:
            known["accuracy"] = without(result["accuracy"], LISTED)
        flat, nested = parted(known)
        for row in result["latency"]:
            cost = cost_columns(costs_by_row.get(row_key(result, shape_of(row))))
            own, below = parted({**columns_of(row), **cost})
            rows.append({**flat, **own, **nested, **below})
        if not result["latency"]:
            rows.append({**flat, **nested})
    write_bytes(target, table(rows).encode())


def parted(entry: Mapping[str, Any], above: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of a dictionary, and those of the ones nested in it, by dotted path."""
    flat: dict[str, Any] = {}
    nested: dict[str, Any] = {}
    for key, value in entry.items():
        if isinstance(value, dict):
            own, below = parted(value, f"{above}{key}.")
            nested |= own | below
        else:
            flat[f"{above}{key}"] = value
    return flat, nested


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV, with the columns of all of them in the order in which they occur."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = [cells([row.get(name) for row in rows]) for name in names]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*columns, strict=True))
    return stream.getvalue()


def cells(values: Sequence[Any]) -> Iterator[Any]:
    """Return the values of a column, numbers among fractions all as fractions or all as integers.

    They are integers where all of them are whole.
    """
    if float not in set(map(type, values)):
        return iter(values)
    kind = int if all(one is None or float(one).is_integer() for one in values) else float
    return (one if one is None else kind(one) for one in values)


def columns_of(row: LatencyRow) -> dict[str, Any]:
    """Return the columns of a latency row; those in MEASURED_SOMETIMES only if it has a value."""
    gpu: Mapping[str, Any] = row["gpu"] or {}
    columns = {f"latency.{name}": value for name, value in without(row, MEASURED_SOMETIMES).items()}
    if row["energy_j"] is not None:
        columns["latency.energy_j"] = row["energy_j"]
    columns |= {f"latency.gpu.{name}": value for name, value in gpu.items()}
    if gpu:
        columns["latency.gpu.throttled"] = "; ".join(gpu["throttled"] or ())
    return {**columns, "latency.noise": "; ".join(row["noise"])}


def row_key(entry: Result | Cost, shape: Shape) -> tuple[Any, ...]:
    """Return what a result and its cost have in common at a shape."""
    return entry["model"], entry["variant"], key_of(shape)


def cost_columns(cost: Cost | None) -> dict[str, Any]:
    """Return the columns of a cost, only of what is known: without a price none is about it."""
    known = without(cost, TOLD) if cost else {}
    return {f"cost.{name}": value for name, value in known.items() if value is not None}


def without(entry: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return `entry` without the fields in `names`."""
    return {key: value for key, value in entry.items() if key not in names}
