"""Summaries of real runs: tests/data/reports/README.md says of which."""

import json
from pathlib import Path
from typing import Any

import pytest
from planted import changed, held

REPORTS = Path(__file__).parents[2] / "data/reports"


@pytest.fixture
def steady(again: dict[str, Any]) -> dict[str, Any]:
    """A run as on a machine that holds its speed: its intervals, and they alone, are planted."""
    return changed(again, held(0.02))


@pytest.fixture
def two() -> dict[str, Any]:
    """A run of two variants whose own intervals are narrow."""
    return json.loads((REPORTS / "two/summary.json").read_text())


@pytest.fixture
def first() -> dict[str, Any]:
    """A run on a busy machine."""
    return json.loads((REPORTS / "first/summary.json").read_text())


@pytest.fixture
def again() -> dict[str, Any]:
    """The same once more."""
    return json.loads((REPORTS / "again/summary.json").read_text())


@pytest.fixture
def upgraded() -> dict[str, Any]:
    """The same with the next version of onnxruntime."""
    return json.loads((REPORTS / "upgraded/summary.json").read_text())
