"""Write what is known of the fields of summary.json from its types: `make schema`.

The page docs/summary-json.md, below its mark, and the JSON Schema docs/summary.schema.json. A
field is described by the string below it in its class, which may be that of several fields. With
--check, end with an error where the page has other fields or descriptions.
"""

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from tightrope.studies.table import STUDIES  # noqa: E402 - where it is, is above
from tightrope.summary.document import Summary  # noqa: E402

PAGE, SCHEMA = ROOT / "docs/summary-json.md", ROOT / "docs/summary.schema.json"
MARK = "<!-- below: make schema -->\n"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
# how the name of a number ends, and its unit; the first that fits
UNITS = {
    **{"_per_s": "per second", "_s": "seconds", "seconds": "seconds", "_ms": "ms"},
    **{"bytes": "bytes", "_mb": "MB", "_mhz": "MHz", "_w": "watts", "_c": "°C", "_j": "joules"},
    **{"_db": "dB", "_points": "percentage points"},
}
NULL = " or null"
WORDS = {"string": "text", "boolean": "true or false"}
Group = tuple[list[str], str]


def described(kind: type) -> list[Group]:
    """Return the fields of a Struct in their order, and what is said of them."""
    found: list[Group] = []
    for base in reversed(kind.__mro__[:-1]):
        if base.__module__.startswith("msgspec"):
            continue
        tree, names = ast.parse(inspect.getsource(base)).body[0], list[str]()
        for node in tree.body[1:]:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.append(node.target.id)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                found.append((names, in_json(node.value.value)))
                names = []
        if names:
            sys.exit(f"{base.__module__}.{base.__name__}: say below {names[-1]} what it is")
    return found


def in_json(text: str) -> str:
    """Return a docstring in one line per paragraph, with None as JSON has it."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return re.sub(r"\bNone\b", "null", "\n\n".join(" ".join(one.split()) for one in paragraphs))


def structs(kind: Any, known: dict[type, int], depth: int = 0) -> dict[type, int]:
    """Return a type and all Structs in its fields, in that order, with their depth."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in known:
        known[kind] = depth
        for field in get_type_hints(kind).values():
            structs(field, known, depth + 1)
        if kind.__name__ == "StudyEntry":
            for study in STUDIES.values():
                structs(study.row, known, depth + 1)
    for part in get_args(kind):
        structs(part, known, depth)
    return known


def title(kind: type) -> str:
    """Return the heading of a type; each study has a Row."""
    found = [name for name, study in STUDIES.items() if study.row is kind]
    return f"Row of {found[0]}" if found else kind.__name__


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of summary.json."""
    kinds = structs(Summary, {})
    _, schemas = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    # msgspec gives a type its short name unless another has it too
    names = ((kind, (kind.__name__, f"{kind.__module__}.{kind.__name__}")) for kind in kinds)
    named = {kind: name for kind, both in names for name in both if name in schemas}
    for kind, name in named.items():
        schemas[name] |= {"title": title(kind), "description": in_json(kind.__doc__ or "")}
        for fields, text in described(kind):
            for field in fields:
                schemas[name]["properties"][field]["description"] = text
    studies = schemas["Summary"]["properties"]["studies"]["properties"] = {}
    for name, study in STUDIES.items():
        own = {"rows": {"items": {"$ref": f"#/$defs/{named[study.row]}"}}}
        entry = {"allOf": [{"$ref": "#/$defs/StudyEntry"}, {"properties": own}]}
        studies[name] = {"type": "array", "items": entry}
    heading = {"$schema": DIALECT, "title": "Tightrope's reports/summary.json"}
    return {**heading, "$ref": "#/$defs/Summary", "$defs": schemas}


def in_words(schema: dict[str, Any], name: str, titles: dict[str, str]) -> str:
    """Return the type of the field `name` in words, a number with its unit."""
    match schema:
        case {"$ref": reference}:
            heading = titles[reference.removeprefix("#/$defs/")]
            return f"[{heading}](#{heading.lower().replace(' ', '-')})"
        case {"anyOf": options}:
            return " or ".join(in_words(one, name, titles) for one in options)
        case {"enum": values}:
            return ", ".join(f"`{one}`" for one in values)
        case {"type": "array", "items": {**item}}:
            return f"list of {in_words(item, name, titles)}"
        case {"type": "object", "additionalProperties": {**item}}:
            return f"by name: {in_words(item, name, titles)}"
        case {"type": "number" | "integer" as kind}:
            return next((unit for end, unit in UNITS.items() if name.endswith(end)), kind)
        case {"type": kind}:
            return WORDS.get(kind, kind)
    return "any"


def sections() -> Iterator[str]:
    """Yield a section per type, with a table of its fields."""
    schemas = json_schema()["$defs"]
    titles = {name: one["title"] for name, one in schemas.items()}
    fields_of = {one["title"]: one["properties"] for one in schemas.values()}
    for kind, depth in structs(Summary, {}).items():
        fields = fields_of[title(kind)]
        yield f"{'##' if depth < 2 else '###'} {title(kind)}\n\n{in_json(kind.__doc__ or '')}\n\n"
        yield "| field | type | meaning |\n| --- | --- | --- |\n"
        for names, text in described(kind):
            types = [in_words(fields[one], one, titles) for one in names]
            end = NULL if all(one.endswith(NULL) for one in types) else ""
            kinds = ", ".join(dict.fromkeys(one.removesuffix(end) for one in types)) + end
            cells = [", ".join(f"`{one}`" for one in names), kinds, text]
            yield "| " + " | ".join(one.replace("|", "\\|") for one in cells) + " |\n"
        yield "\n"


def main() -> None:
    """Write the page and the schema, or compare the page."""
    before, mark, below = PAGE.read_text().partition(MARK)
    text = "\n" + "".join(sections()).rstrip("\n") + "\n"
    if "--check" in sys.argv:
        if below != text:
            sys.exit(f"{PAGE.relative_to(ROOT)} has other fields: run `make schema`")
        return
    PAGE.write_text(f"{before}{mark or MARK}{text}")
    SCHEMA.write_text(json.dumps(json_schema(), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
