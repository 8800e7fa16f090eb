"""Labelled texts of local tables."""

import re
from pathlib import Path
from typing import Any

from tightrope.artifacts.provenance import library_versions
from tightrope.data.splits import Material, number_labels, role_of, train_and_evaluation
from tightrope.errors import ConfigError, TightropeError
from tightrope.sources.local import matching_paths
from tightrope.sources.tables import ROWS, TABLES, excerpt, read_columns, read_texts, table_suffix

# NUL is a sign of a binary file or of UTF-16, half a surrogate pair is no character
HALVES = re.compile("[\x00\ud800-\udfff]")


def local_files(source: str, pattern: str, **_settings: Any) -> list[Path]:
    """Return the sorted tables that match `pattern`; raise ConfigError with `source` for none."""
    files = [file for file in matching_paths(pattern) if file.is_file()]
    if not files:
        raise ConfigError(f"{source}: no file matches; give the path of a table or a pattern")
    for file in files:
        if table_suffix(file) not in TABLES:
            raise ConfigError(f"{file}: no table; {source} may match {', '.join(TABLES)} and .gz")
    return files


def libraries(source: str, location: str, **_settings: Any) -> dict[str, str | None]:
    """Return versions of the libraries that read the tables."""
    suffixes = {table_suffix(file) for file in local_files(source, location)}
    return library_versions("pandas", *["pyarrow"] * (".parquet" in suffixes))


def files_by_role(source: str, pattern: str) -> tuple[list[Path], list[Path] | None]:
    """Return the files for training and for evaluation, or all files and None."""
    roles: dict[str, list[Path]] = {}
    for file in local_files(source, pattern):
        roles.setdefault(role_of(file.name), []).append(file)
    return train_and_evaluation(source, roles, str)


def read(source: str, pattern: str, *, columns: dict[str, str], **_settings: Any) -> Material:
    """Return texts and labels of every file that `pattern` matches.

    The words of a file name decide between train and evaluation (test is used only without another
    evaluation file). With only one of the two, all files are one pool.
    """
    train, evaluation = files_by_role(source, pattern)
    evaluation_rows = None if evaluation is None else read_tables(evaluation, columns)
    return number_labels(read_tables(train, columns), evaluation_rows)


def read_unlabelled(source: str, pattern: str, *, column: str, **_settings: Any) -> list[str]:
    """Return the texts of every file that `pattern` matches; they need no label."""
    return [
        text
        for file in local_files(source, pattern)
        for text in stripped_texts(file, column, read_texts(file, column))
    ]


def read_tables(files: list[Path], columns: dict[str, str]) -> list[tuple[str, Any]]:
    """Return stripped text and label of every row of `files`; blanks are errors."""
    rows: list[tuple[str, Any]] = []
    for file in files:
        values, labels = read_columns(file, columns)
        rows += zip(stripped_texts(file, columns["text"], values), labels, strict=True)
    return rows


def stripped_texts(file: Path, column: str, values: Any) -> list[str]:
    """Return texts without surrounding space; raise TightropeError for values that are no text."""
    texts = values.tolist()
    remedy = "set columns.text of the model to the column that holds texts"
    for row, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise TightropeError(
                f"{file}: row {row} {ROWS}: column {column!r} holds {excerpt(text)}, no text; "
                f"{remedy}"
            )
        if HALVES.search(text):
            raise TightropeError(
                f"{file}: row {row} {ROWS}: column {column!r} holds {excerpt(text)} with a NUL or "
                "half a character; save the table as UTF-8"
            )
    if all(map(is_number, texts)):
        raise TightropeError(
            f"{file}: column {column!r} holds numbers only ({excerpt(texts[0])} in row 1), no "
            f"texts; {remedy}"
        )
    return [text.strip() for text in texts]


def is_number(text: str) -> bool:
    """Whether the text is only a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
