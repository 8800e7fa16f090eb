"""Summaries of real runs: tests/data/reports/README.md says of which."""

import json
from pathlib import Path
from typing import Any

import pytest
from planted import changed, held

REPORTS = Path(__file__).parents[2] / "data/reports"


def summary(name: str) -> dict[str, Any]:
    return json.loads((REPORTS / name / "summary.json").read_text())


@pytest.fixture
def steady() -> dict[str, Any]:
    """A run as on a machine that holds its speed: its intervals, and they alone, are planted."""
    return changed(summary("again"), held(0.02))


@pytest.fixture
def two() -> dict[str, Any]:
    """A run of two variants whose own intervals are narrow."""
    return summary("two")


@pytest.fixture
def first() -> dict[str, Any]:
    """A run on a busy machine."""
    return summary("first")
