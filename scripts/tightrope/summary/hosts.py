"""The machines of the records."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from tightrope.machine.host import host_key
from tightrope.records.record import Record
from tightrope.summary.model_types import Host


class Machine(NamedTuple):
    """What a record says of the machine on which it was made."""

    host: dict[str, Any]
    libraries: dict[str, str | None]
    status: str

    @classmethod
    def of(cls, record: Record) -> "Machine":
        """Return that of a record."""
        return cls(record.host, record.libraries, record.status)


def add_hosts(found: dict[str, Host], machines: Iterable[Machine]) -> None:
    """Add the hosts of more records, with their libraries and GPUs.

    A failure of a named host does not describe it: where the scheduler ended the job, another
    machine wrote the record.
    """
    for host, libraries, status in machines:
        key = host_key(host)
        if key not in found and "name" in host and status != "ok":
            continue
        if key not in found:
            found[key] = msgspec.convert({**host, "libraries": {}, "gpu_uuids": []}, Host)
        entry = found[key]
        entry["libraries"] |= libraries
        uuids = {*entry["gpu_uuids"], host.get("gpu_uuid")}
        entry["gpu_uuids"] = sorted(uuid for uuid in uuids if uuid)
