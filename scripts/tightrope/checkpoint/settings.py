"""Settings files of a checkpoint, without the fields that would load code or other files."""

import json
from typing import Any

from tightrope.artifacts.files import strict_json
from tightrope.errors import ConfigError
from tightrope.inputs.image_settings import FILE as PROCESSOR

FILES = ("config.json", "tokenizer_config.json", PROCESSOR)
# Code of the checkpoint, and kernels that transformers would fetch from the Hub: engines choose the
# implementation of attention themselves.
CODE = ("auto_map", "custom_pipelines", "trust_remote_code", "use_kernels", "kernel_config")
IMPLEMENTATIONS = ("attn_implementation", "experts_implementation")
# the author's own paths
PATHS = ("name_or_path", "_name_or_path")


def without_code(source: str, name: str, content: bytes) -> bytes:
    """Return the settings file `name` without the fields that load code; else the same bytes.

    Raises ConfigError naming `source` where it holds no JSON object.
    """
    document = settings_in(source, name, content)
    kept = stripped(document)
    if kept == document:
        return content
    return json.dumps(kept, indent=2, sort_keys=True).encode() + b"\n"


def settings_in(source: str, name: str, content: bytes) -> dict[str, Any]:
    """Return the JSON object in a settings file; raise ConfigError naming `source` without one."""
    try:
        document = strict_json(content)
    except ValueError as error:
        raise ConfigError(f"{source}: {name} is invalid JSON ({error})") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{source}: {name} holds no JSON object; save the model again")
    return document


def stripped(value: Any) -> Any:
    """Return a copy of a JSON value without the fields that load code, at any depth."""
    if isinstance(value, list):
        return [stripped(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: stripped(one) for name, one in value.items() if not loads_code(name)}


def loads_code(name: str) -> bool:
    """Return whether a field of a settings file loads code or names a file elsewhere."""
    implementation = name.removeprefix("_").startswith(IMPLEMENTATIONS)
    return implementation or name in CODE or name in PATHS or name.endswith("_file")
