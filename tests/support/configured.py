"""Checked configurations, and the line that refuses one."""

import copy
from pathlib import Path
from typing import Any

import pytest
from tightrope.errors import ConfigError
from tightrope.plan.config_checks import checked

CONFIG = Path(__file__).parents[2] / "config/config.yaml"
MODEL = {"checkpoint": "scratch:bert?max_position_embeddings=512", "data": "random"}


def configured(**keys: Any) -> dict[str, Any]:
    """The smallest configuration with these keys."""
    return checked(copy.deepcopy({"models": {"tiny": MODEL}, **keys}))


def with_model(**keys: Any) -> dict[str, Any]:
    """The models of a configuration with one, which has these keys."""
    return {"models": {"tiny": {**MODEL, **keys}}}


def refused(**keys: Any) -> str:
    """The line that refuses such a configuration."""
    with pytest.raises(ConfigError) as caught:
        configured(**keys)
    assert "\n" not in str(caught.value)
    return str(caught.value)
