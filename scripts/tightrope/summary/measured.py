"""What every entry of summary.json on a measured variant says of its record."""

from typing import TypedDict

from tightrope.machine.host import host_key
from tightrope.records.record import Record
from tightrope.summary.result_types import Attempt


class Measured(TypedDict):
    """A variant of a model on a host, whether it could be measured, else the reason, and when."""

    model: str
    variant: str
    host: str
    status: Attempt
    reason: str | None
    measured: str


def measured_entry(record: Record) -> Measured:
    """Return what the entry of a record begins with."""
    return {
        "model": record.model,
        "variant": record.variant,
        "host": host_key(record.host),
        "status": record.status,
        "reason": record.reason,
        "measured": record.measured,
    }
