"""Rows of latency of quantized variants that were timed beside their own engine in float."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from tightrope.host import fingerprint
from tightrope.records import LatencyRecord
from tightrope.results import latency_entry

Entry = dict[str, Any]
# by model, host, the quantized variant and the one in float
Compared = Mapping[tuple[str, str, str, str], list[Entry]]
# by the quantized variant and the one in float, of one model and host at one shape
Pairs = Mapping[tuple[str, str], Entry]
NOTHING: Any = MappingProxyType({})
SHAPE_KEYS = ("batch", "sequence", "height", "width")


def compared_rows(records: Iterable[LatencyRecord]) -> Compared:
    """The rows of those records; none of a record without the float variant, which failed."""
    return {
        (record.model, fingerprint(record.host), record.variant, record.baseline): [
            latency_entry(shape, record) for shape in record.shapes
        ]
        for record in records
        if record.baseline is not None
    }


def pairs_at(compared: Compared, model: str, host: str, shape: Entry) -> Pairs:
    """The rows of that shape of one model on one host."""
    return {
        (variant, rival): row
        for (*place, variant, rival), rows in compared.items()
        if place == [model, host]
        for row in rows
        if shape_of(row) == shape
    }


def shape_of(row: Entry) -> Entry:
    """The keys of a latency row that say which shape it is."""
    return {key: row[key] for key in SHAPE_KEYS if key in row}
