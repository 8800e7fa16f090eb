"""Labelled texts in local tables: csv, tsv, json, jsonl and parquet, plain or .gz."""

import re
import zlib
from pathlib import Path
from typing import Any

from tightrope.errors import ConfigError, TightropeError
from tightrope.sources.material import Material, Row

TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
ROWS = "(a heading is no row)"
# Words of a file name that say which split it holds.
WORDS = {
    "train": {"train", "training"},
    "evaluation": {"dev", "val", "valid", "validation", "eval", "evaluation"},
    "test": {"test"},
}


def matching_files(source: str, pattern: str) -> list[Path]:
    """The tables that `pattern` matches, sorted; raises ConfigError naming `source` for none."""
    path = Path(pattern).expanduser()
    matched = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    files = [file for file in matched if file.is_file()]
    if not files:
        raise ConfigError(f"{source}: no file matches; give the path of a table or a pattern")
    for file in files:
        if table_suffix(file) not in TABLES:
            raise ConfigError(f"{file}: no table; {source} may match {', '.join(TABLES)} and .gz")
    return files


def read_files(source: str, pattern: str, *, columns: dict[str, str]) -> Material:
    """Texts and labels of every file that `pattern` matches.

    The words of a file's name say whether it is train or evaluation (test counts only where
    there is no other evaluation file); with one of the two alone, all files are one pool.
    """
    roles: dict[str, list[Path]] = {}
    for file in matching_files(source, pattern):
        roles.setdefault(file_role(file), []).append(file)
    evaluation = roles.pop("test", [])
    evaluation = roles.pop("evaluation", evaluation)
    train = roles.pop("train", [])
    pool = roles.pop("pool", [])
    if train and evaluation:
        if pool:
            raise TightropeError(
                f"{pool[0]}: its name says neither train nor evaluation, others that {source} "
                "matches do; rename it or narrow the pattern"
            )
        return labelled(read_tables(train, columns), read_tables(evaluation, columns))
    return labelled(read_tables(train + evaluation + pool, columns), None)


def file_role(file: Path) -> str:
    """train, evaluation, test or pool, by the words of the file's name."""
    words = set(re.split(r"[^a-z]+", file.name.lower()))
    return next((role for role, known in WORDS.items() if words & known), "pool")


def table_suffix(file: Path) -> str:
    """The suffix that says the format, without .gz."""
    return (file.with_suffix("") if file.suffix == ".gz" else file).suffix.lower()


def read_tables(files: list[Path], columns: dict[str, str]) -> list[tuple[str, Any]]:
    """Text and label of every row of `files`, labels as they stand there."""
    return [row for file in files for row in read_rows(file, columns)]


def read_rows(file: Path, columns: dict[str, str]) -> list[tuple[str, Any]]:
    """Stripped text and label of every row, none of them blank.

    Raises TightropeError naming the file, and the row and column where one is to blame.
    """
    try:
        table = read_table(file, columns["text"])
    except (ValueError, OSError, EOFError, zlib.error) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise TightropeError(f"{file}: cannot be read as a table ({reason})") from error
    for column in columns.values():
        if column not in table.columns:
            raise TightropeError(
                f"{file}: has no column {column!r}, only {', '.join(map(str, table.columns))}; "
                "set columns.text and columns.label of the model"
            )
    if table.empty:
        raise TightropeError(f"{file}: has no rows")
    labels = whole_labels(file, columns["label"], table[columns["label"]])
    texts = stripped_texts(file, columns["text"], table[columns["text"]])
    return list(zip(texts, labels, strict=True))


def read_table(file: Path, text: str) -> Any:
    """The file as a pandas table; the column `text` stays as it is written."""
    import pandas

    # "NA" and "null" are words of a text; only an empty field is a blank.
    plain = {"dtype": {text: str}, "keep_default_na": False, "na_values": [""]}
    suffix = table_suffix(file)
    if suffix == ".csv":
        return pandas.read_csv(file, **plain)
    if suffix == ".tsv":
        return pandas.read_csv(file, sep="\t", quoting=3, **plain)
    if suffix == ".parquet":
        return pandas.read_parquet(file)
    return pandas.read_json(file, lines=suffix != ".json", dtype=False)


def stripped_texts(file: Path, column: str, values: Any) -> list[str]:
    """Texts without the space around them; raises TightropeError for what is none."""
    require_filled(file, column, values)
    texts = values.tolist()
    remedy = "set columns.text of the model to the column that holds texts"
    for row, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise TightropeError(
                f"{file}: row {row} {ROWS}: column {column!r} holds {shown(text)}, no text; "
                f"{remedy}"
            )
    if all(map(is_number, texts)):
        raise TightropeError(
            f"{file}: column {column!r} holds numbers only ({shown(texts[0])} in row 1), no texts; "
            f"{remedy}"
        )
    return [text.strip() for text in texts]


def whole_labels(file: Path, column: str, values: Any) -> list[Any]:
    """Labels as int or str; raises TightropeError for blanks, fractions and what is neither."""
    require_filled(file, column, values)
    labels = values.tolist()
    for row, label in enumerate(labels, start=1):
        if not isinstance(label, str | int) and not is_whole(label):
            raise TightropeError(
                f"{file}: row {row} {ROWS}: column {column!r} holds {shown(label)}; labels are "
                "whole numbers or names: set columns.label of the model, or mend the table"
            )
    return [label if isinstance(label, str) else int(label) for label in labels]


def require_filled(file: Path, column: str, values: Any) -> None:
    """Raise TightropeError with the first blank row of a pandas column and their number."""
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


def is_number(text: str) -> bool:
    """Whether the text is nothing but a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_whole(value: Any) -> bool:
    """Whether the value is a float without a fraction, as a column with whole numbers may be."""
    return isinstance(value, float) and value.is_integer()


def shown(value: Any) -> str:
    """The value for an error, cut where it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else f"{text[:40]}..."


def labelled(train: list[tuple[str, Any]], evaluation: list[tuple[str, Any]] | None) -> Material:
    """Material whose labels are numbered in the order of their values."""
    values = {label for _, label in train + (evaluation or [])}
    ordered = sorted(values, key=lambda value: (isinstance(value, str), value))
    index = {value: number for number, value in enumerate(ordered)}

    def rows(part: list[tuple[str, Any]]) -> list[Row]:
        return [(text, index[label]) for text, label in part]

    return Material(
        labels=[str(value) for value in ordered],
        train=rows(train),
        evaluation=None if evaluation is None else rows(evaluation),
    )
