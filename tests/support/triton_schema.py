"""The schema of Triton's config.pbtxt, from its client."""

import importlib.util
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import text_format

# alone: the package itself imports grpc, which nothing here needs
MODULE = Path(sysconfig.get_path("purelib")) / "tritonclient/grpc/model_config_pb2.py"


@cache
def schema() -> Any:
    """Return the module of the messages."""
    spec = importlib.util.spec_from_file_location(MODULE.stem, MODULE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parsed(text: str) -> Any:
    """Return the message ModelConfig of a config.pbtxt; raise ParseError for an unknown field."""
    return text_format.Parse(text, schema().ModelConfig())


def parameters_of(config: Any) -> dict[str, str]:
    """Return the parameters of a model by their key."""
    return {key: value.string_value for key, value in config.parameters.items()}
