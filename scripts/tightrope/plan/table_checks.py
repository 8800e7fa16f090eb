"""Check the local tables of the models: their columns, and small tables as a whole."""

from collections import Counter
from pathlib import Path
from typing import Any

from tightrope.data import source as data_sources
from tightrope.data.material import role_of
from tightrope.errors import ConfigError, TightropeError, nearest
from tightrope.plan.job_inputs import data_source
from tightrope.signature import TEXT
from tightrope.sources.tables import TABLES, column_names, table_suffix

Document = dict[str, Any]
# larger sources of texts are read by the job alone: these take a few tenths of a second
LARGEST_BYTES = 4_000_000
COMPRESSION = 10
MOST_NAMED = 12


def check_tables(config: Document) -> None:
    """Local tables must have the configured columns; small ones must be usable."""
    for name, model in config["models"].items():
        if not model["data"].startswith("files:"):
            continue
        tables = tables_of(config, name)
        content = "text" if model["task"] == TEXT else "image"
        columns = {key: model["columns"][key] for key in (content, "label")}
        try:
            for file in tables:
                check_columns(name, file, columns)
            if tables and model["task"] == TEXT and sum(map(size, tables)) <= LARGEST_BYTES:
                check_examples(name, model["data"], columns)
        except ConfigError:
            raise
        except TightropeError as error:
            raise ConfigError(f"config: models.{name}.data: {error}") from None


def tables_of(config: Document, name: str) -> list[Path]:
    """Return the tables of a model's data; of texts without a test file that is not used."""
    files = map(Path, data_sources.local_files(**data_source(config, name)))
    tables = [file for file in files if table_suffix(file) in TABLES]
    unused = {"test"} if "evaluation" in {role_of(file.name) for file in tables} else set()
    if config["models"][name]["task"] != TEXT:
        return tables
    return [file for file in tables if role_of(file.name) not in unused]


def size(file: Path) -> int:
    """Return about how many bytes of text a table holds."""
    compressed = file.suffix in (".gz", ".parquet")
    return file.stat().st_size * (COMPRESSION if compressed else 1)


def check_columns(name: str, file: Path, columns: dict[str, str]) -> None:
    """Raise ConfigError for a column that the table does not have."""
    names = column_names(file, whole=size(file) <= LARGEST_BYTES)
    if names is None:
        return
    for key, column in columns.items():
        if column not in names:
            raise ConfigError(
                f"config: models.{name}.columns.{key} = {column}: {file} has no such column"
                f"{offered(column, names)}: set columns.{key} to one of these"
            )


def offered(column: str, names: list[str]) -> str:
    """Return the nearest of the columns of a table, and all of them."""
    guess = nearest(column, names)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{f'{guess} It' if guess else '; it'} has {', '.join(names[:MOST_NAMED])}{more}"


def check_examples(name: str, source: str, columns: dict[str, str]) -> None:
    """Raise TightropeError for what the job would refuse, and for a label with one example."""
    kind, location = data_sources.parse_source(source, task=TEXT)
    material = data_sources.load_kind(kind, task=TEXT).read(source, location, columns=columns)
    counts = Counter(label for _, label in (*material.train, *(material.evaluation or ())))
    rare = [material.labels[label] for label, count in sorted(counts.items()) if count == 1]
    if not rare:
        return
    one = len(rare) == 1
    raise ConfigError(
        f"config: models.{name}.data = {source}: label{'' if one else 's'} {rare[0]!r}"
        f"{'' if one else f' and {len(rare) - 1} more'} {'has' if one else 'have'} one example"
        f"{'' if one else ' each'}, which cannot be in all splits; bring more examples of "
        f"{'it' if one else 'them'}, or take {'it' if one else 'them'} out"
    )
