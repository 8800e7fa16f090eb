"""The JSON Schema of the configuration, made of the types of its keys."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tightrope.config.keys import Config
from tightrope.config.types import Section

Document = dict[str, Any]
NULL = {"type": "null"}
KEYWORDS = ("items", "additionalProperties")


def schema_of_keys(studies: Mapping[str, type[Section]]) -> Document:
    """Return the schema of all keys, with a section for each of the studies, by name."""
    return as_by_hand(*components(studies))


def components(studies: Mapping[str, type[Section]]) -> tuple[Document, dict[str, Document]]:
    """Return the schema of Config with those of the studies, and of each Section by its name."""
    made = msgspec.json.schema_components([Config, *studies.values()], ref_template="{name}")
    # as JSON has it, with lists
    (own, *others), known = msgspec.json.decode(msgspec.json.encode(made))
    sections = {name: {**one, "default": {}} for name, one in zip(studies, others, strict=True)}
    known[own["$ref"]]["properties"] |= sections
    return own, known


def as_by_hand(schema: Document, known: Mapping[str, Document]) -> Document:
    """Return a schema as one writes it.

    A reference to one of the `known` schemas is replaced by it; a choice of null and something else
    is `type: [number, "null"]`, a choice of a single word `const`, and an enum has no type.
    """
    if "$ref" in schema:
        schema = {**known[schema["$ref"]], **schema}
    schema = {key: one for key, one in schema.items() if key != "$ref"}
    options = [as_by_hand(one, known) for one in schema.pop("anyOf", ())]
    if "enum" in schema:
        return {key: one for key, one in schema.items() if key != "type"}
    if NULL in options and len(options) == 2:
        (kind,) = (one for one in options if one != NULL)
        schema = {**kind, **schema, "type": [kind["type"], "null"]}
    elif options:
        words = [{"const": one["enum"][0]} if "enum" in one else one for one in options]
        schema["anyOf"] = words
    for key in KEYWORDS:
        if isinstance(schema.get(key), dict):
            schema[key] = as_by_hand(schema[key], known)
    if "properties" in schema:
        own = {name: as_by_hand(one, known) for name, one in schema["properties"].items()}
        # first: of two errors the one about a misspelt key, not that the right one is missing
        unknown = {"additionalProperties": schema.pop("additionalProperties")}
        schema = {**unknown, **schema, "properties": own}
    return schema
