"""Reading of the records of all variants, which are many."""

from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tightrope.artifacts.files import read_bytes
from tightrope.artifacts.seals import read_sealed_json, require_sealed
from tightrope.records.record import SCHEMA, Record

Kind = TypeVar("Kind", bound=Record)


def read_checked(path: Path | str, kind: Any) -> Any:
    """Return the JSON document in `path`, as `read_sealed_json` does, in less time.

    It raises the same errors, and has only the fields that `kind` names.
    """
    content = read_bytes(path)
    require_sealed(path, content)
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError:
        return read_sealed_json(path, kind)


def read_record(kind: type[Kind], path: Path | str) -> Kind:
    """Return the record in `path`, as `kind.read` does and with its errors, in less time.

    The JSON is read into the types of the record at once, not into a document first.
    """
    content = read_bytes(path)
    require_sealed(path, content)
    try:
        document = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
        if set(document) != {field.name for field in fields(kind)}:
            return kind.read(path)
        record = msgspec.json.decode(content, type=kind)
        for name, contents in kind.CONTENTS.items():
            msgspec.convert(getattr(record, name), contents)
    except msgspec.DecodeError:
        return kind.read(path)
    return record if record.schema == SCHEMA else kind.read(path)
