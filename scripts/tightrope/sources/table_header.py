"""The columns of a local table, without reading its rows."""

import zlib
from pathlib import Path

from tightrope.errors import TightropeError
from tightrope.sources.tables import table_suffix

# of a file of JSON lines: a row without the column is an error in any case
FIRST_ROWS = 100


def column_names(file: Path, *, whole: bool) -> list[str] | None:
    """Return the columns of a table; raise TightropeError naming the file if it is no table.

    A file .json can only be read as a whole: without `whole` None is returned for it.
    """
    import pandas
    import pyarrow.parquet

    suffix = table_suffix(file)
    try:
        if suffix == ".json":
            if not whole:
                return None
            frame = pandas.read_json(file, dtype=False)
        elif suffix == ".parquet":
            frame = pyarrow.parquet.read_schema(file).empty_table().to_pandas()
        elif suffix == ".csv":
            frame = pandas.read_csv(file, nrows=0)
        elif suffix == ".tsv":
            frame = pandas.read_csv(file, nrows=0, sep="\t", quoting=3)
        else:
            frame = pandas.read_json(file, lines=True, nrows=FIRST_ROWS, dtype=False)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise TightropeError(f"{file}: cannot be read as a table ({reason})") from error
    return [str(name) for name in frame.columns]
