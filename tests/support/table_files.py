"""Tables as a user may have them."""

from pathlib import Path
from typing import Any

import pandas


def table_file(path: Path, rows: list[Any], columns: list[str]) -> Path:
    """A file of these rows, of the format that its name says."""
    frame = pandas.DataFrame(rows, columns=columns)
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind in ("json", "jsonl"):
        frame.to_json(path, orient="records", lines=kind == "jsonl")
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    return path
