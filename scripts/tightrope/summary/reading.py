"""Reading of the records of all variants, which are many."""

from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

import msgspec

from tightrope.artifacts.content import checked, read_artifact
from tightrope.artifacts.files import read_bytes
from tightrope.records.record import SCHEMA, Record

Kind = TypeVar("Kind", bound=Record)


def read_checked(path: Path | str, kind: Any) -> Any:
    """Return the JSON document in `path`, as `read_artifact` does, in less time.

    It raises the same errors, and has only the fields that `kind` names.
    """
    content = checked(path, read_bytes(path))
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError:
        return read_artifact(path, kind)


def read_record(kind: type[Kind], path: Path | str) -> Kind:
    """Return the record in `path`, as `kind.read` does and with its errors, in less time.

    The JSON is read into the types of the record at once, not into a document first.
    """
    content = checked(path, read_bytes(path))
    own = decoder(cast(Any, kind))  # mypy: no class is hashable
    try:
        found = own.decode(content)
        record = kind(**{name: getattr(found, name) for name in found.__struct_fields__})
        for name, contents in kind.CONTENTS.items():
            msgspec.convert(getattr(record, name), contents)
    except msgspec.DecodeError:
        return kind.read(path)
    if record.schema != SCHEMA:
        return kind.read(path)
    record.read_beside(path)
    return record


@cache
def decoder(kind: type[Record]) -> msgspec.json.Decoder[Any]:
    """Return a decoder of JSON with the fields of a record, all of them and no others."""
    types = get_type_hints(kind)
    members = [(field.name, types[field.name]) for field in fields(kind)]
    strict = msgspec.defstruct(kind.__name__, members, forbid_unknown_fields=True)
    return msgspec.json.Decoder(strict)
