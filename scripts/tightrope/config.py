"""The configuration: checked before anything runs, with defaults, errors in one line."""

import difflib
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from tightrope import checkpoint, data
from tightrope.engine_table import ENGINES
from tightrope.errors import ConfigError
from tightrope.static_shapes import buckets_of
from tightrope.variants import configured, is_onnx, parse

Document = dict[str, Any]


def checked(config: Document, schema: Path | str) -> Document:
    """`config` with every default filled in; raises ConfigError with one line otherwise."""
    if not config:
        raise ConfigError(
            "the configuration is empty: pass --configfile config/config.yaml "
            "(profiles/default does so by itself)"
        )
    check_words_and_numbers(config)
    document = yaml.safe_load(Path(schema).read_text())
    config = with_types(config, document)
    check_schema(config, document)
    filled = with_defaults(config, document)
    for check in CHECKS:
        check(filled)
    return filled


def check_words_and_numbers(value: Any, place: str = "") -> None:
    """Raise ConfigError for a key that is no word and for a number that is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"config: {place} = {value}: must be a finite number")
    inner = enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, dict):
        inner = value.items()
        if wrong := [key for key in value if not isinstance(key, str)]:
            name = f"{place}.{wrong[0]}" if place else wrong[0]
            raise ConfigError(f"config: {name}: a key must be a word; put it in quotes")
    for key, one in inner:
        check_words_and_numbers(one, f"{place}.{key}" if place else str(key))


def check_schema(config: Document, schema: Document) -> None:
    """Raise ConfigError for the first key or value that the schema does not allow."""
    errors = jsonschema.Draft202012Validator(schema).iter_errors(config)
    first = min(errors, key=lambda error: (len(error.path), str(list(error.path))), default=None)
    if first is not None:
        raise ConfigError(explain(first))


def explain(error: jsonschema.ValidationError) -> str:
    """One line: the key, the value, what is allowed and the nearest right spelling."""
    key = ".".join(str(part) for part in error.absolute_path)
    if error.validator == "additionalProperties":
        allowed = sorted(error.schema.get("properties", {}))
        wrong = next(name for name in error.instance if name not in allowed)
        place = f"{key}.{wrong}" if key else wrong
        return (
            f"config: {place}: unknown key{nearest(wrong, allowed)}; allowed: {', '.join(allowed)}"
        )
    if error.validator == "anyOf" and (inner := meant(error)):
        return explain(inner)
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        return f"config: {key or 'top level'}: the key {missing} is missing"
    return f"config: {key} = {error.instance!r}: {allowed_values(error)}"


def meant(error: jsonschema.ValidationError) -> jsonschema.ValidationError | None:
    """What is wrong inside the alternative for objects, where `error` is about an object."""
    if not isinstance(error.instance, dict):
        return None
    options = [option.get("type") for option in error.schema["anyOf"]]
    inner = [one for one in error.context or () if options[one.schema_path[0]] == "object"]
    return min(inner, key=lambda one: (len(one.path), str(list(one.path))), default=None)


def allowed_values(error: jsonschema.ValidationError) -> str:
    """What the schema would have accepted in the place of `error`."""
    schema = error.schema
    if error.validator == "anyOf":
        return "must be " + " or ".join(describe(option) for option in schema["anyOf"])
    if error.validator == "enum":
        allowed = [str(value) for value in error.validator_value]
        return f"must be one of {', '.join(allowed)}{nearest(str(error.instance), allowed)}"
    if error.validator == "type":
        return f"must be {describe(schema)}"
    if error.validator == "pattern" and "description" in schema:
        return f"must be {schema['description'].rstrip('.')}"
    return error.message.replace("\n", " ")


def describe(schema: Document) -> str:
    """The kind of value that `schema` accepts, in words."""
    if "const" in schema:
        return repr(schema["const"])
    kinds = schema.get("type", "any value")
    words = " or ".join(kinds) if isinstance(kinds, list) else kinds
    items = schema.get("items", {}).get("enum")
    return f"{words} of {', '.join(items)}" if items else words


def nearest(word: str, allowed: list[str]) -> str:
    """`; did you mean "x"?` where one of `allowed` is close to `word`, else nothing."""
    close = difflib.get_close_matches(word, allowed, n=1, cutoff=0.6)
    return f'; did you mean "{close[0]}"?' if close else ""


def with_types(value: Any, schema: Document) -> Any:
    """A copy of `value` in which words are numbers, booleans and null where the schema wants them.

    Snakemake leaves them as words inside a value of --config, as in calibration={samples: [256]}.
    """
    if isinstance(value, list):
        return [with_types(item, schema.get("items", {})) for item in value]
    if isinstance(value, dict):
        return {key: with_types(item, schema_of(key, schema)) for key, item in value.items()}
    kinds = schema.get("type", "string")
    if isinstance(value, float) and value.is_integer() and takes_integers(schema):
        return int(value)
    if value == "null" and {"type": "null"} in schema.get("anyOf", ()):
        return None
    if not isinstance(value, str) or kinds == "string":
        return value
    if value == "null":
        return None
    return value if "string" in kinds else typed(value)


def takes_integers(schema: Document) -> bool:
    """Whether a whole number is meant there: JSON Schema takes 4.0 for one too."""
    options = [schema, *schema.get("anyOf", ())]
    return any("integer" in option.get("type", ()) for option in options)


def typed(word: str) -> Any:
    """What YAML reads in `word`, `word` itself where that is no YAML."""
    try:
        return yaml.safe_load(word)
    except yaml.YAMLError:
        return word


def schema_of(key: str, schema: Document) -> Document:
    """The schema of the value of `key` in an object with that `schema`."""
    for option in schema.get("anyOf", ()):
        if option.get("type") == "object":
            return schema_of(key, option)
    others = schema.get("additionalProperties")
    return schema.get("properties", {}).get(key, others if isinstance(others, dict) else {})


def with_defaults(value: Any, schema: Document) -> Any:
    """A copy of `value` with the schema's defaults at every level."""
    if isinstance(value, list):
        return [with_defaults(item, schema.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    filled = {key: default for key, default in defaults(schema.get("properties", {}))} | value
    return {key: with_defaults(item, schema_of(key, schema)) for key, item in filled.items()}


def defaults(properties: Document) -> Iterator[tuple[str, Any]]:
    """Keys and values of those properties that have a default."""
    for name, schema in properties.items():
        if "default" in schema:
            yield name, schema["default"]


def check_pool(config: Document) -> None:
    """No sample count may be larger than the pool of calibration examples."""
    pool = config["calibration"]["pool"]
    for count in config["calibration"]["samples"]:
        if count > pool:
            raise ConfigError(
                f"config: calibration.samples = {count}: more than calibration.pool = {pool}; "
                "enlarge the pool or take fewer samples"
            )


def check_devices(config: Document) -> None:
    """Engines for NVIDIA GPUs are not built yet, so they cannot be asked for outright."""
    if "cuda" in config["devices"]:
        raise ConfigError("config: devices: not yet: this version runs engines on the cpu only")


def check_threads(config: Document) -> None:
    """No more threads than the processors of the machine that is measured, if it is this one."""
    processors = os.cpu_count() or 1
    if config["host"] == "auto" and config["threads"] != "auto" and config["threads"] > processors:
        raise ConfigError(
            f"config: threads = {config['threads']}: this machine has {processors} processors; "
            "take fewer, or name the host that the jobs run on (`host`)"
        )


def check_variants(config: Document) -> None:
    """Every engine must have its precisions on the configured devices."""
    try:
        configured_names(config)
    except ConfigError as error:
        raise ConfigError(f"config: engines on devices = {config['devices']}: {error}") from None


def configured_names(config: Document) -> list[str]:
    """The names of the variants of all models."""
    variants = [one for model in config["models"] for one in configured(config, model)]
    return list(dict.fromkeys(map(str, variants)))


def check_traffic(config: Document) -> None:
    """Traffic is measured for configured variants only."""
    known = configured_names(config)
    for name in config["traffic"]["variants"]:
        if name not in known:
            raise ConfigError(
                f"config: traffic.variants: {name}: no configured variant{nearest(name, known)}"
            )


def check_buckets(config: Document) -> None:
    """What is measured must lie within the buckets, and TVM needs some."""
    if config["buckets"] is None and config["engines"].get("tvm"):
        raise ConfigError("config: buckets = null: tvm compiles static shapes; say buckets: auto")
    if not has_static_engines(config):
        return
    loaded = [parse(name) for name in config["traffic"]["variants"]]
    for name, model in config["models"].items():
        buckets = buckets_of(config, name)
        if buckets is None:
            continue
        wanted = [(f"shapes: {key}", key, one[key]) for one in config["shapes"] for key in buckets]
        wanted.append((f"models.{name}.max_sequence", "sequence", model["max_sequence"]))
        if any(ENGINES[variant.engine].static for variant in loaded):
            wanted.append(("traffic.batch", "batch", config["traffic"]["batch"]))
        for place, key, size in wanted:
            if size > max(buckets[key]):
                raise ConfigError(
                    f"config: {place} = {size}: beyond buckets.{key} = {buckets[key]}; give "
                    "buckets that hold it, or buckets: null for OpenVINO without static shapes"
                )


def has_static_engines(config: Document) -> bool:
    """Whether an engine is asked for that compiles a program for each bucket."""
    return any(ENGINES[engine].static and names for engine, names in config["engines"].items())


def check_sources(config: Document) -> None:
    """Local files and folders that the models name must be there."""
    for name, model in config["models"].items():
        for key, local_files in (("checkpoint", checkpoint), ("data", data)):
            try:
                local_files.local_files(model[key])
            except ConfigError as error:
                raise ConfigError(f"config: models.{name}.{key} = {model[key]}: {error}") from None


def check_recipes(config: Document) -> None:
    """What is an ONNX file already cannot be trained."""
    for name, model in config["models"].items():
        if is_onnx(model["checkpoint"]) and model["train"]:
            raise ConfigError(
                f"config: models.{name}.train: the model is an ONNX file and cannot be trained; "
                "remove train, or start from its checkpoint"
            )


def check_shapes(config: Document) -> None:
    """No sequence may be longer than a model takes, where that is known without fetching it."""
    for name, model in config["models"].items():
        longest = checkpoint.longest_sequence(model["checkpoint"])
        if longest is None:
            continue
        wanted = {f"shapes: sequence = {shape['sequence']}": shape for shape in config["shapes"]}
        lengths = {key: shape["sequence"] for key, shape in wanted.items()}
        lengths[f"models.{name}.max_sequence = {model['max_sequence']}"] = model["max_sequence"]
        if model["train"]:
            length = model["train"]["sequence"]
            lengths[f"models.{name}.train.sequence = {length}"] = length
        if isinstance(config["buckets"], dict) and has_static_engines(config):
            edges = config["buckets"]["sequence"]
            lengths |= {f"buckets.sequence = {edge}": edge for edge in edges}
        for key, length in lengths.items():
            if length > longest:
                raise ConfigError(f"config: {key}: {name} takes at most {longest} tokens")


CHECKS = (
    check_pool,
    check_devices,
    check_threads,
    check_variants,
    check_traffic,
    check_sources,
    check_recipes,
    check_shapes,
    check_buckets,
)
