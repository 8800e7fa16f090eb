"""The configuration of a user: validated, with defaults filled in, errors in one line."""

import json
import math
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import jsonschema
import yaml

from tightrope.config.parents import with_parents
from tightrope.config.schema import Document, schema_of_keys
from tightrope.config.types import Section
from tightrope.errors import ConfigError, nearest

# of a configuration: its levels, its values, and their sizes
MOST_LEVELS, MOST_VALUES, LARGEST = 16, 1_000_000, 10**13
# by the key, in which * is the name of a model
GONE = {
    "builds": "builds of one engine differ for TVM alone; latency: {loads: 2} loads each twice",
    "cascades": 'choose one model by the table "Smaller models" of the report',
    "engines.onnxruntime_tensorrt": (
        "use engines: {onnxruntime: [fp16]} with onnxruntime: {provider: tensorrt}"
    ),
    "engines.torch_tensorrt": "use engines: {tensorrt: [fp16]}",
    "models.*.compress": "say prune: {target: 2x}, a model for each target (docs/pruning.md)",
    "models.*.sparsity": "say train: {sparsity: 0.8}, the share of the weights that becomes zero",
    "search_seconds": "leave it out, the search of int8-auto has a handful of trials",
    "torch_tensorrt": "use tensorrt: {optimization_level: 3}",
    "tvm": "leave it out, TVM tunes no more; its engine is engines: {tvm: [fp32]}",
}


def read(config: Document, studies: Mapping[str, type[Section]]) -> Document:
    """Return `config` with defaults filled in, also in the sections of the studies, by name.

    Raises ConfigError with one line for what is invalid by itself, wherever it is read: neither the
    user's files nor the machine are looked at.
    """
    if not config:
        raise ConfigError(
            "the configuration is empty: pass --configfile config/config.yaml "
            "(profiles/default does so by itself)"
        )
    check_values(config)
    document = schema_of_keys(studies)
    config = with_parents(with_types(config, document))
    errors = jsonschema.Draft202012Validator(document).iter_errors(config)
    if first := min(errors, key=lambda one: (len(one.path), str(list(one.path))), default=None):
        raise ConfigError(explain(first))
    return with_defaults(config, document)


def explain(error: jsonschema.ValidationError) -> str:
    """Format an error as one line: key, value, what is allowed and the nearest right spelling."""
    path, hint = list(error.absolute_path), ""
    parts = (f" (entry {one + 1})" if isinstance(one, int) else f".{one}" for one in path)
    key = "".join(parts).removeprefix(".")
    instance: Any = error.instance
    required: Any = error.validator_value
    if error.validator == "additionalProperties":
        allowed = sorted(violated(error).get("properties", {}))
        wrong = next(name for name in instance if name not in allowed)
        place = f"{key}.{wrong}" if key else wrong
        if instead := [words for gone, words in GONE.items() if fnmatchcase(place, gone)]:
            return f"config: {place}: this key is gone: {instead[0]}"
        return (
            f"config: {place}: unknown key{nearest(wrong, allowed)}; allowed: {', '.join(allowed)}"
        )
    if error.validator == "anyOf" and (inner := meant(error)):
        return explain(inner)
    if error.validator == "required":
        missing = next(name for name in required if name not in instance)
        return f"config: {key or 'top level'}: the key {missing} is missing"
    if len(path) == 2 and path[0] == "models" and error.validator == "type":
        hint = "; a model has a name: models: {mine: {checkpoint: …, data: …}}"
    return f"config: {key} = {instance!r}: {allowed_values(error)}{hint}"


def violated(error: jsonschema.ValidationError) -> Document:
    """Return the schema that `error` is about; the schemas true and false have no keywords."""
    return error.schema if isinstance(error.schema, dict) else {}


def meant(error: jsonschema.ValidationError) -> jsonschema.ValidationError | None:
    """Return the error inside the object alternative of `anyOf`, where the value is an object."""
    if not isinstance(error.instance, dict):
        return None
    kinds = (option.get("type") for option in violated(error)["anyOf"])
    options: dict[str | int, Any] = dict(enumerate(kinds))
    inner = [one for one in error.context or () if options[one.schema_path[0]] == "object"]
    return min(inner, key=lambda one: (len(one.path), str(list(one.path))), default=None)


def allowed_values(error: jsonschema.ValidationError) -> str:
    """Describe the values that the schema accepts at the location of `error`."""
    schema = violated(error)
    expected: Any = error.validator_value
    if error.validator == "anyOf":
        return "must be " + " or ".join(describe(option) for option in schema["anyOf"])
    if error.validator == "enum":
        allowed = [str(value) for value in expected]
        return f"must be one of {', '.join(allowed)}{nearest(str(error.instance), allowed)}"
    if error.validator == "type":
        return f"must be {describe(schema)}"
    if error.validator == "pattern" and "title" in schema:
        return f"must be {schema['title']}"
    return error.message.replace("\n", " ")


def describe(schema: Document) -> str:
    """Describe the kind of value that `schema` accepts."""
    if "const" in schema:
        return repr(schema["const"])
    items = schema.get("items", {}).get("enum")
    lists = {"array": f"array of {', '.join(items)}"} if items else {}
    return " or ".join(lists.get(kind, kind) for kind in kinds_of(schema) or ["any value"])


def with_types(value: Any, schema: Document) -> Any:
    """Return a copy of `value` with words and integers converted to the types of the schema.

    Snakemake leaves numbers, booleans and null as strings inside a value of --config, as in
    calibration={samples: [256]}. A single value in the place of a list is a list of it.
    """
    if value == "null" and takes("null", schema):
        return None
    if isinstance(value, str) and takes("integer", schema) and type(typed(value)) is int:
        return typed(value)
    if takes_list(value, schema):
        value = [value]  # samples: 256 for samples: [256]
    if isinstance(value, list):
        items: Document = next((one["items"] for one in options(schema) if "items" in one), {})
        return [with_types(item, items) for item in value]
    if isinstance(value, dict):
        return {key: with_types(item, schema_of(key, schema)) for key, item in value.items()}
    if value is False and "off" in schema.get("enum", ()):
        return "off"  # YAML reads off as false
    if isinstance(value, str) and "enum" in schema:
        # None, True and False as YAML writes them
        written = {one if isinstance(one, str) else json.dumps(one): one for one in schema["enum"]}
        return written.get(value, value)
    if isinstance(value, float) and value.is_integer() and takes("integer", schema):
        return int(value)
    if type(value) is int and schema.get("type") == "string":
        return str(value)  # a label or a column that is a number
    of_words = "string" in (kinds_of(schema) or ["string"])
    return typed(value) if isinstance(value, str) and not of_words else value


def kinds_of(schema: Document) -> list[str]:
    """Return the types that the schema accepts, none if it says none."""
    kinds = schema.get("type", [])
    return kinds if isinstance(kinds, list) else [kinds]


def options(schema: Document) -> list[Document]:
    """Return the schema and its alternatives."""
    return [schema, *schema.get("anyOf", ())]


def takes(kind: str, schema: Document) -> bool:
    """Return whether the schema accepts values of a type of JSON."""
    return any(kind in kinds_of(option) for option in options(schema))


def takes_list(value: Any, schema: Document) -> bool:
    """Return whether the schema asks for a list of values like `value`, which is none."""
    if {"const": value} in options(schema) or (type(value) is int and takes("integer", schema)):
        return False
    lists = [
        one for one in options(schema) if "array" in kinds_of(one) and one.get("minItems", 0) < 2
    ]
    objects = any(one["items"].get("type") == "object" for one in lists)
    return bool(lists) and isinstance(value, dict if objects else (str, int, float))


def typed(word: str) -> Any:
    """Parse `word` as YAML; return it unchanged where it is invalid YAML."""
    try:
        return yaml.safe_load(word)
    except yaml.YAMLError:
        return word


def schema_of(key: str, schema: Document) -> Document:
    """Return the schema of the value of `key` in an object with `schema`."""
    for option in schema.get("anyOf", ()):
        if option.get("type") == "object":
            return schema_of(key, option)
    others = schema.get("additionalProperties")
    return schema.get("properties", {}).get(key, others if isinstance(others, dict) else {})


def with_defaults(value: Any, schema: Document) -> Any:
    """Return a copy of `value` with the schema's defaults at every level."""
    if isinstance(value, list):
        return [with_defaults(item, schema.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    keys = schema.get("properties", {}).items()
    filled = {key: one["default"] for key, one in keys if "default" in one} | value
    return {key: with_defaults(item, schema_of(key, schema)) for key, item in filled.items()}


def check_values(config: Document) -> None:
    """Raise ConfigError for a key that is no string and for a number that is not finite.

    Also for more values or levels than any sensible configuration has: aliases of YAML can repeat a
    value any number of times, and inside itself.
    """
    level: list[tuple[str, Any]] = [("", config)]
    values = 0
    for _ in range(MOST_LEVELS):
        level = [one for place, value in level for one in parts_of(place, value)]
        values += len(level)
        if values > MOST_VALUES:
            raise ConfigError(
                f"config: more than {MOST_VALUES:,} values; are there aliases of aliases in it?"
            )
        if not level:
            return
    raise ConfigError(
        f"config: more than {MOST_LEVELS} levels; is there an alias within its own value?"
    )


def parts_of(place: str, value: Any) -> list[tuple[str, Any]]:
    """Return what a list or an object holds, each with its place; raise as `check_values` does."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"config: {place} = {value}: must be a finite number")
    if isinstance(value, int | float) and abs(value) > LARGEST:
        raise ConfigError(f"config: {place} = {value:.3g}: larger than {LARGEST:.0e}; lower it")
    if isinstance(value, list):
        return [(f"{place} (entry {number})", one) for number, one in enumerate(value, start=1)]
    if not isinstance(value, dict):
        return []
    start = f"{place}." if place else ""
    if wrong := [key for key in value if not isinstance(key, str)]:
        raise ConfigError(f"config: {start}{wrong[0]}: a key must be a word; put it in quotes")
    return [(f"{start}{key}", one) for key, one in value.items()]
