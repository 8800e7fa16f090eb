"""Columns of local tables: csv, tsv, json, jsonl and parquet, plain or .gz."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tightrope.errors import TightropeError
from tightrope.sources.regular import opened

TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
ROWS = "(not counting the header)"
# options of pandas.read_csv by the suffix of tables of separated values
SEPARATED: dict[str, dict[str, Any]] = {".csv": {}, ".tsv": {"sep": "\t", "quoting": 3}}
MOST_COLUMNS, LONGEST_HEADER = 10_000, 2**20
# what pandas and pyarrow raise for files that are no tables
UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
    OSError,
    EOFError,
    zlib.error,
)


def table_suffix(file: Path) -> str:
    """Return the suffix of the format, without .gz."""
    return (file.with_suffix("") if file.suffix == ".gz" else file).suffix.lower()


def read_columns(file: Path, columns: dict[str, str]) -> tuple[Any, list[Any]]:
    """Return the pandas column of texts or images, and labels as int or str; blanks are errors.

    `columns` maps `text` or `image`, and `label`, to column names. Raises TightropeError naming the
    file, and the row and column of the error.
    """
    (content,) = columns.keys() - {"label"}
    table = read_rows(file, columns, content)
    labels = whole_labels(file, columns["label"], table[columns["label"]])
    return filled_column(file, columns[content], table), labels


def read_texts(file: Path, column: str) -> Any:
    """Return the pandas column of texts that need no label; raises as `read_columns` does."""
    return filled_column(file, column, read_rows(file, {"text": column}, "text"))


def filled_column(file: Path, column: str, table: Any) -> Any:
    """Return a column of the table; raise TightropeError where it is blank in a row."""
    require_filled(file, column, table[column])
    return table[column]


def read_rows(file: Path, columns: dict[str, str], content: str) -> Any:
    """Return the pandas table in `file`; raise TightropeError without rows or one of `columns`."""
    with table_errors(file):
        table = read_table(file, columns[content])
        require_once(file, columns)
    for column in columns.values():
        if column not in table.columns:
            raise TightropeError(
                f"{file}: has no column {column!r}, only {', '.join(map(str, table.columns))}; "
                f"set {' and '.join(f'columns.{one}' for one in columns)} of the model"
            )
    if table.empty:
        raise TightropeError(f"{file}: has no rows")
    return table


def read_table(file: Path, content: str) -> Any:
    """Read the file as a pandas table; column `content` is not converted."""
    import pandas

    # "NA" and "null" are valid texts; only an empty field is blank.
    options: dict[str, Any] = {
        "dtype": {content: str},
        "keep_default_na": False,
        "na_values": [""],
    }
    suffix = table_suffix(file)
    if suffix in SEPARATED:
        require_narrow(file)
    with opened(file, text=suffix != ".parquet") as stream:
        if suffix in SEPARATED:
            return pandas.read_csv(stream, **SEPARATED[suffix], **options)
        if suffix == ".parquet":
            return pandas.read_parquet(stream)
        return pandas.read_json(stream, lines=suffix != ".json", dtype=False)


def require_narrow(file: Path) -> None:
    """Raise TightropeError where the first line of a table of separated values is far too wide.

    pandas takes minutes to tell a million columns of the same name apart.
    """
    separator = SEPARATED[table_suffix(file)].get("sep", ",").encode()
    with opened(file, text=True) as stream:
        first = stream.readline(LONGEST_HEADER)
    if first.count(separator) >= MOST_COLUMNS:
        raise TightropeError(f"{file}: has more than {MOST_COLUMNS} columns; take out the others")
    if len(first) == LONGEST_HEADER:
        raise TightropeError(
            f"{file}: its first line has more than {LONGEST_HEADER} bytes; it names the columns"
        )


def header(file: Path) -> list[str]:
    """Return the names in the first line of a table of separated values, also those that repeat."""
    import pandas

    with opened(file, text=True) as stream:
        options: dict[str, Any] = {"header": None, "nrows": 1, "dtype": str}
        first = pandas.read_csv(stream, **SEPARATED[table_suffix(file)], **options)
    return [str(name) for name in first.iloc[0].tolist()]


def require_once(file: Path, columns: dict[str, str]) -> None:
    """Raise TightropeError where one of `columns` is twice in the header of the table."""
    names = header(file) if table_suffix(file) in SEPARATED else []
    for column in columns.values():
        if names.count(column) > 1:
            raise TightropeError(
                f"{file}: has {names.count(column)} columns {column!r}; rename all but one"
            )


@contextmanager
def table_errors(file: Path) -> Iterator[None]:
    """Turn what the parsers of tables raise into a TightropeError that names `file`."""
    try:
        yield
    except UNREADABLE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise TightropeError(f"{file}: cannot be read as a table ({reason})") from error


def whole_labels(file: Path, column: str, values: Any) -> list[Any]:
    """Return labels as int or str; raise TightropeError for blanks, fractions and other types."""
    require_filled(file, column, values)
    labels = values.tolist()
    for row, label in enumerate(labels, start=1):
        if not isinstance(label, str | int) and not is_whole(label):
            raise TightropeError(
                f"{file}: row {row} {ROWS}: column {column!r} holds {excerpt(label)}; labels are "
                "whole numbers or names: set columns.label of the model, or fix the table"
            )
    return [label if isinstance(label, str) else int(label) for label in labels]


def require_filled(file: Path, column: str, values: Any) -> None:
    """Raise TightropeError with the first blank row of a pandas column and the blank count."""
    missing = zip(values.tolist(), values.isna().tolist(), strict=True)
    blank = [
        row
        for row, (value, none) in enumerate(missing, start=1)
        if none or (isinstance(value, str) and not value.strip())
    ]
    if blank:
        raise TightropeError(
            f"{file}: column {column!r} is blank in {len(blank)} of {len(values)} rows, first in "
            f"row {blank[0]} {ROWS}; an example is a text and a label: fill these in or take the "
            "rows out"
        )


def is_whole(value: Any) -> bool:
    """Whether the value is a float without a fraction, as in a column of whole numbers."""
    return isinstance(value, float) and value.is_integer()


def excerpt(value: Any) -> str:
    """Return the value for an error message, truncated if long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else f"{text[:40]}..."
