"""Failures recorded in summary.json."""

from pathlib import Path
from typing import Any

from tightrope.artifacts.files import read_json
from tightrope.records.record import TRAINING


def failures(summary: Path) -> list[dict[str, Any]]:
    """Return the results and measured trainings with status `failed`."""
    document = read_json(summary)
    trainings = [{**one, "variant": TRAINING} for one in document.get("training", ())]
    return [one for one in document["results"] + trainings if one["status"] == "failed"]
