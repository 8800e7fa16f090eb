"""Write what is known of the configuration from the types of its keys: `make schema`.

The page docs/configuration.md, below its mark, and the JSON Schema for editors. With --check, end
with an error where they say something else.
"""

import json
import re
import sys
from collections.abc import Iterator

import yaml
from summary_schema import DIALECT, MARK, ROOT, described, in_json, structs
from tightrope.config.keys import Config, Engines
from tightrope.config.schema import Document, as_by_hand, components
from tightrope.studies.table import STUDIES

PAGE, SCHEMA = ROOT / "docs/configuration.md", ROOT / "config/schemas/config.schema.yaml"
HEADER = (
    "# Made by `make schema` of scripts/tightrope/config/; for editors and the workflow catalog.\n"
)
# of keys whose type has a docstring and a section of its own
BELOW = "See below."
WORDS = {"string": "text", "boolean": "true or false", "array": "list"}
LIMITS = {
    **{"minimum": "from", "exclusiveMinimum": "above", "exclusiveMaximum": "below"},
    **{"maximum": "up to"},
}


def schema() -> Document:
    """Return the JSON Schema of the configuration (draft 2020-12) with what each key does."""
    studies = {name: study.settings for name, study in STUDIES.items()}
    own, known = components(studies)
    kinds = structs(Config, {})
    for settings in studies.values():
        structs(settings, kinds)
    for kind in kinds:
        both = (kind.__name__, f"{kind.__module__}.{kind.__name__}")
        (name,) = (one for one in both if one in known)
        known[name]["description"] = in_json(kind.__doc__ or "")
        keys = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
        for fields, text in described(kind) if kind is not Engines else ():
            for field in fields if text != BELOW else ():
                known[name]["properties"][keys[field]]["description"] = text
    document = as_by_hand(own, known)
    for name, study in STUDIES.items():
        document["properties"][name] |= {"title": name, "description": study.about}
    return {"$schema": DIALECT, **document}


def allowed(schema: Document, sections: dict[str, str]) -> str:
    """Return what a key may be, in words; `sections` has the heading of each type."""
    match schema:
        case {"anyOf": options}:
            return " or ".join(allowed(one, sections) for one in options)
        case {"enum": values}:
            return ", ".join(map(literal, values))
        case {"const": value}:
            return literal(value)
    kinds = schema.get("type", "any")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return " or ".join(in_words(kind, schema, sections) for kind in kinds)


def in_words(kind: str, schema: Document, sections: dict[str, str]) -> str:
    """Return what a key of this type of JSON may be."""
    match kind, schema:
        case "object", {"properties": _}:
            heading = sections[schema["title"]]
            return f"[section](#{re.sub(r'[^a-z0-9_-]', '', heading.lower().replace(' ', '-'))})"
        case "object", {"additionalProperties": {**item}}:
            name = schema.get("propertyNames", {"title": "as in shapes"})["title"]
            return f"by name ({name}): {allowed(item, sections)}"
        case "array", {"items": {**item}}:
            return f"list of {allowed(item, sections)}"
        case "string", {"title": form}:
            return form
        case "number" | "integer", _:
            bounds = [f"{word} {schema[key]:,}" for key, word in LIMITS.items() if key in schema]
            return " ".join([kind, *bounds])
    return WORDS.get(kind, kind)


def literal(value: object) -> str:
    """Return a value as YAML has it, in code."""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def parts(schema: Document, place: str) -> Iterator[tuple[str, Document]]:
    """Yield the sections in a value of the key `place`, each with its heading."""
    if "properties" in schema:
        yield place or "Top level", schema
        for name, one in schema["properties"].items():
            yield from parts(one, f"{place}.{name}" if place else name)
    for one in schema.get("anyOf", ()):
        yield from parts(one, place)
    for key, end in {"items": "", "additionalProperties": ".NAME"}.items():
        if isinstance(schema.get(key), dict):
            yield from parts(schema[key], f"{place}{end}")


def page(document: Document) -> Iterator[str]:
    """Yield a section per type, with a table of its keys, at the least deep of its places."""
    found: dict[str, tuple[str, Document]] = {}
    for heading, one in sorted(parts(document, ""), key=lambda part: part[0].count(".")):
        found.setdefault(one["title"], (heading, one))
    sections = {title: heading for title, (heading, _) in found.items()}
    for heading, section in found.values():
        yield f"## {heading}\n\n{section['description']}\n\n"
        yield "| key | default | allowed | meaning |\n| --- | --- | --- | --- |\n"
        for name, one in section["properties"].items():
            default = "required" if name in section["required"] else default_of(one)
            cells = [f"`{name}`", default, allowed(one, sections), one.get("description", "")]
            yield "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells)
            yield " |\n"
        yield "\n"


def default_of(schema: Document) -> str:
    """Return the default of a key; nothing without one, and where its section has it by key."""
    keys = schema.get("properties", {}).values()
    said = keys and schema.get("default") is not None and all("default" in one for one in keys)
    return "" if said or "default" not in schema else literal(schema["default"])


def main() -> None:
    """Write the page and the schema, or compare them."""
    document = schema()
    before, mark, _ = PAGE.read_text().partition(MARK)
    texts = {
        PAGE: f"{before}{mark or MARK}\n{''.join(page(document)).rstrip()}\n",
        SCHEMA: HEADER + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100),
    }
    for path, text in texts.items():
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.is_file() or path.read_text() != text:
            sys.exit(f"{path.relative_to(ROOT)} has other keys: run `make schema`")


if __name__ == "__main__":
    main()
