"""Images of a split, read from its Arrow file on access."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

Example = dict[str, Any]
SUFFIX = ".arrow"
COLUMNS = ("label", "image", "name")


class ImageSplit(Sequence[Example]):
    """Examples {"label": int, "image": encoded bytes, "name": origin of the image}.

    The file is memory-mapped, so an example uses memory only while it is held. A slice is a list of
    examples.
    """

    def __init__(self, file: Path | str, rows: range | None = None) -> None:
        """Open an Arrow IPC file with the columns COLUMNS, as `ImageStore.write` writes it.

        With `rows`, the examples are those rows of the file, in that order.
        """
        import pyarrow

        with pyarrow.memory_map(str(file)) as stream:
            table = pyarrow.ipc.open_file(stream).read_all()
        self._columns = [table.column(name) for name in COLUMNS]
        self._rows = range(table.num_rows) if rows is None else rows

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._rows)

    def labels(self) -> list[int]:
        """Return the label of each image, without reading the images."""
        labels = self._columns[0].to_pylist()
        return [labels[row] for row in self._rows]

    @overload
    def __getitem__(self, index: int) -> Example: ...

    @overload
    def __getitem__(self, index: slice) -> list[Example]: ...

    def __getitem__(self, index: int | slice) -> Example | list[Example]:
        """Return an example, or a list of the examples of a slice."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        row = self._rows[index]
        values = [column[row].as_py() for column in self._columns]
        return dict(zip(COLUMNS, values, strict=True))
