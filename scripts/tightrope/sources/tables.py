"""Columns of local tables: csv, tsv, json, jsonl and parquet, plain or .gz."""

import csv
import io
import re
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tightrope.errors import TightropeError
from tightrope.sources.local import opened

TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
ROWS = "(not counting the header)"
# options of pandas.read_csv by the suffix of tables of separated values
SEPARATED: dict[str, dict[str, Any]] = {".csv": {"skipinitialspace": True}, ".tsv": {"sep": "\t"}}
JSON: dict[str, Any] = {"dtype": False, "encoding": "utf-8-sig"}
PLAIN, BOM = {"quoting": 3}, b"\xef\xbb\xbf"
# a table whose every field with a quotation mark is quoted as a whole, the marks in it doubled
QUOTED = re.compile(rb'(?:(?:"(?:[^"]++|"")*+"|[^"\t\r\n]*+)(?:\t|\r?\n|\Z))*+')
DECIMAL = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?")
MOST_COLUMNS, LONGEST_HEADER = 10_000, 2**20
# of a file of JSON lines: a row without the column is an error in any case
FIRST_ROWS = 100
# what pandas and pyarrow raise for files that are no tables
UNREADABLE = (
    *(ValueError, TypeError, LookupError, AttributeError, RecursionError),
    *(OSError, EOFError, zlib.error),
)


def table_suffix(file: Path) -> str:
    """Return the suffix of the format, without .gz."""
    return (file.with_suffix("") if file.suffix == ".gz" else file).suffix.lower()


def read_columns(file: Path, columns: dict[str, str]) -> tuple[Any, list[Any]]:
    """Return the pandas column of texts or images, and labels as int or str; blanks are errors.

    Labels of tables of separated values are as written: 01 and 1 are two.

    `columns` maps `text` or `image`, and `label`, to column names. Raises TightropeError naming the
    file, and the row and column of the error.
    """
    (content,) = columns.keys() - {"label"}
    table = read_rows(file, columns, content)
    labels = whole_labels(file, columns["label"], table[columns["label"]])
    return filled(file, columns[content], table[columns[content]]), labels


def read_texts(file: Path, column: str) -> Any:
    """Return the pandas column of texts that need no label; raises as `read_columns` does."""
    return filled(file, column, read_rows(file, {"text": column}, "text")[column])


def read_rows(file: Path, columns: dict[str, str], content: str) -> Any:
    """Return the pandas table in `file`; raise TightropeError without rows or one of `columns`."""
    with table_errors(file):
        table = read_table(file, [columns[content], *filter(None, [columns.get("label")])])
        names = header(file) if table_suffix(file) in SEPARATED else []
    for column in columns.values():
        if names.count(column) > 1:
            raise TightropeError(
                f"{file}: has {names.count(column)} columns {column!r}; rename all but one"
            )
    for column in columns.values():
        if column not in table.columns:
            raise TightropeError(
                f"{file}: has no column {column!r}, only {', '.join(map(str, table.columns))}; "
                f"set {' and '.join(f'columns.{one}' for one in columns)} of the model"
            )
    if table.empty:
        raise TightropeError(f"{file}: has no rows")
    return table


def read_table(file: Path, texts: list[str]) -> Any:
    """Read the file as a pandas table; of separated values those columns are not converted."""
    import pandas

    # "NA" and "null" are valid texts; only an empty field is blank.
    options: dict[str, Any] = {"keep_default_na": False, "na_values": [""]}
    options["dtype"] = dict.fromkeys(texts, str)
    suffix = table_suffix(file)
    if suffix in SEPARATED:
        require_narrow(file)
    if suffix == ".csv":
        require_quoted(file)
    with opened(file, text=suffix != ".parquet") as stream:
        if suffix in SEPARATED:
            table = pandas.read_csv(stream, **separated(file), **options)
            # before the first name there may be numbers of rows, as R writes them
            numbers = (pandas.RangeIndex(n, n + len(table)) for n in (0, 1))
            if not any(map(table.index.equals, numbers)):
                why = "rows have more fields than the first line; quote texts with a separator"
                raise TightropeError(f"{file}: {why}")
            return table
        if suffix == ".parquet":
            return pandas.read_parquet(stream)
        return pandas.read_json(stream, lines=is_lines(file), **JSON)


def separated(file: Path, *, header: bool = False) -> dict[str, Any]:
    """Return the options of pandas.read_csv for a table of separated values, or its first line.

    In a tsv quotation marks are those of the texts, as in GLUE's, unless all of them quote fields
    as pandas does and one is doubled, in the first name, in several lines, or in each row.
    """
    suffix = table_suffix(file)
    if suffix == ".csv":
        return SEPARATED[suffix]
    with opened(file, text=True) as stream:
        content = stream.readline() if header else stream.read()
    content = content.removeprefix(BOM)
    first, *lines = content.split(b"\n")
    told = content.startswith(b'"') or b'""' in content
    told = told or any(line.count(b'"') % 2 for line in (first, *lines))
    rows = [line for line in lines if line]
    told = told or (bool(rows) and all(b'"' in row for row in rows))
    return {**SEPARATED[suffix], **({} if told and QUOTED.fullmatch(content) else PLAIN)}


def require_quoted(file: Path) -> None:
    """Raise TightropeError for an odd quotation mark in a csv: pandas makes other texts of it."""
    csv.field_size_limit(2**31 - 1)
    with opened(file, text=True) as stream:
        lines = io.TextIOWrapper(stream, "utf-8-sig", newline="")
        rows = csv.reader(lines, strict=True, skipinitialspace=True)
        try:
            deque(rows, maxlen=0)
        except csv.Error as error:
            remedy = "double the quotation marks in a quoted field"
            raise TightropeError(f"{file}: line {rows.line_num}: {error}; {remedy}") from error


def is_lines(file: Path) -> bool:
    """Whether a file of JSON has an object on each line, whatever its name says."""
    with opened(file, text=True) as stream:
        first = stream.readline().removeprefix(BOM).strip()
        more = next((line for line in stream if line.strip()), b"")
    whole = table_suffix(file) != ".json" or (first.endswith(b"}") and bool(more))
    return whole and not first.startswith(b"[")


def require_narrow(file: Path) -> None:
    """Raise TightropeError where the first line of separated values is too wide, or another's.

    pandas takes minutes to tell a million columns of the same name apart.
    """
    separator = SEPARATED[table_suffix(file)].get("sep", ",").encode()
    with opened(file, text=True) as stream:
        first = stream.readline(LONGEST_HEADER)
    if first.count(separator) >= MOST_COLUMNS:
        raise TightropeError(f"{file}: has more than {MOST_COLUMNS} columns; take out the others")
    found = max(b"\t;|,", key=lambda one: first.count(one))
    if separator not in first and found in first:
        why = f"has no {separator.decode()!r} in its first line, but {chr(found)!r}"
        raise TightropeError(f"{file}: {why}; save it with the separator of its kind")
    if len(first) == LONGEST_HEADER:
        raise TightropeError(
            f"{file}: its first line has more than {LONGEST_HEADER} bytes; it names the columns"
        )


def header(file: Path) -> list[str]:
    """Return the names in the first line of a table of separated values, also those that repeat."""
    import pandas

    with opened(file, text=True) as stream:
        options: dict[str, Any] = {"header": None, "nrows": 1, "dtype": str}
        first = pandas.read_csv(stream, **separated(file, header=True), **options)
    return [str(name) for name in first.iloc[0].tolist()]


@contextmanager
def table_errors(file: Path) -> Iterator[None]:
    """Turn what the parsers of tables raise into a TightropeError that names `file`."""
    try:
        yield
    except UNREADABLE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        remedy = "; save it as UTF-8" if isinstance(error, UnicodeError) else ""
        raise TightropeError(f"{file}: cannot be read as a table ({reason}){remedy}") from error


def whole_labels(file: Path, column: str, values: Any) -> list[Any]:
    """Return labels as int or str; raise TightropeError for blanks, fractions and other types."""
    given = filled(file, column, values).tolist()
    # True as in a csv, and as a model may call an output
    labels = [str(one).strip() if isinstance(one, str | bool) else one for one in given]
    # as pandas writes whole numbers of a column in which one is missing, and fractions
    if all(map(DECIMAL.fullmatch, map(str, labels))) and any("." in str(one) for one in labels):
        labels = [float(one) for one in labels]
    for row, label in enumerate(labels, start=1):
        # pandas holds whole numbers of a column as floats where one is missing
        whole = isinstance(label, float) and label.is_integer()
        if not whole and not isinstance(label, str | int):
            raise TightropeError(
                f"{file}: row {row} {ROWS}: column {column!r} holds {excerpt(label)}; labels are "
                "whole numbers or names: set columns.label of the model, or fix the table"
            )
    return [label if isinstance(label, str) else int(label) for label in labels]


def filled(file: Path, column: str, values: Any) -> Any:
    """Return a pandas column; raise TightropeError with its blank rows if there are any."""
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
    return values


def excerpt(value: Any) -> str:
    """Return the value for an error message, truncated if long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else f"{text[:40]}..."


def column_names(file: Path, *, whole: bool) -> list[str] | None:
    """Return the columns of a table; raise TightropeError naming the file if it is no table.

    A file .json can only be read as a whole: without `whole` None is returned for it.
    """
    import pandas
    import pyarrow.parquet

    suffix = table_suffix(file)
    if suffix == ".json" and not whole:
        return None
    with table_errors(file), opened(file, text=suffix != ".parquet") as stream:
        if suffix == ".parquet":
            frame = pyarrow.parquet.read_schema(stream).empty_table().to_pandas()
        elif suffix in SEPARATED:
            require_narrow(file)
            frame = pandas.read_csv(stream, nrows=0, **separated(file, header=True))
        else:
            lines = is_lines(file)
            nrows = FIRST_ROWS if lines else None
            frame = pandas.read_json(stream, lines=lines, nrows=nrows, **JSON)
    return [str(name) for name in frame.columns]
