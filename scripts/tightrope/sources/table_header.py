"""The columns of a local table, without reading its rows."""

from pathlib import Path

from tightrope.sources.regular import opened
from tightrope.sources.tables import SEPARATED, require_narrow, table_errors, table_suffix

# of a file of JSON lines: a row without the column is an error in any case
FIRST_ROWS = 100


def column_names(file: Path, *, whole: bool) -> list[str] | None:
    """Return the columns of a table; raise TightropeError naming the file if it is no table.

    A file .json can only be read as a whole: without `whole` None is returned for it.
    """
    import pandas
    import pyarrow.parquet

    suffix = table_suffix(file)
    if suffix == ".json" and not whole:
        return None
    with table_errors(file):
        if suffix in SEPARATED:
            require_narrow(file)
    with table_errors(file), opened(file, text=suffix != ".parquet") as stream:
        if suffix == ".json":
            frame = pandas.read_json(stream, dtype=False)
        elif suffix == ".parquet":
            frame = pyarrow.parquet.read_schema(stream).empty_table().to_pandas()
        elif suffix in SEPARATED:
            frame = pandas.read_csv(stream, nrows=0, **SEPARATED[suffix])
        else:
            frame = pandas.read_json(stream, lines=True, nrows=FIRST_ROWS, dtype=False)
    return [str(name) for name in frame.columns]
