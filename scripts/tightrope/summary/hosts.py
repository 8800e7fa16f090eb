"""The machines of the records."""

from collections.abc import Iterable

import msgspec

from tightrope.machine.host import fingerprint
from tightrope.records.record import Record
from tightrope.summary.model_types import Host


def hosts(records: Iterable[Record]) -> dict[str, Host]:
    """Return each host of the records by fingerprint, with the libraries and GPUs used on it."""
    found: dict[str, Host] = {}
    for record in records:
        host = msgspec.convert({**record.host, "libraries": {}, "gpu_uuids": []}, Host)
        entry = found.setdefault(fingerprint(record.host), host)
        entry["libraries"] |= record.libraries
        uuids = {*entry["gpu_uuids"], record.host.get("gpu_uuid")}
        entry["gpu_uuids"] = sorted(uuid for uuid in uuids if uuid)
    return found
