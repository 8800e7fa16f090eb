"""Summaries of real runs: tests/data/reports/README.md says of which."""

import json
from pathlib import Path
from typing import Any

import pytest

REPORTS = Path(__file__).parents[2] / "data/reports"


@pytest.fixture
def steady() -> dict[str, Any]:
    """A run with narrow intervals."""
    return json.loads((REPORTS / "steady/summary.json").read_text())


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
