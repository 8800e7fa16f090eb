"""The machines of the records."""

from collections.abc import Iterable

import msgspec

from tightrope.machine.host import host_key
from tightrope.records.record import Record
from tightrope.summary.model_types import Host


def hosts(records: Iterable[Record]) -> dict[str, Host]:
    """Return each host of the records by its key, with the libraries and GPUs used on it.

    The key is the name that the configuration gives to a kind of node, else the fingerprint.
    """
    found: dict[str, Host] = {}
    add_hosts(found, records)
    return found


def add_hosts(found: dict[str, Host], records: Iterable[Record]) -> None:
    """Add the hosts of more records, with their libraries and GPUs.

    A failure of a named host does not describe it: where the scheduler ended the job, another
    machine wrote the record.
    """
    for record in records:
        key = host_key(record.host)
        if key not in found and "name" in record.host and record.status != "ok":
            continue
        if key not in found:
            found[key] = msgspec.convert({**record.host, "libraries": {}, "gpu_uuids": []}, Host)
        entry = found[key]
        entry["libraries"] |= record.libraries
        uuids = {*entry["gpu_uuids"], record.host.get("gpu_uuid")}
        entry["gpu_uuids"] = sorted(uuid for uuid in uuids if uuid)
