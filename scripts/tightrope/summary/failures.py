"""Failures recorded in summary.json."""

from pathlib import Path
from typing import Any

from tightrope.artifacts.files import read_json
from tightrope.records.cascade import CASCADE
from tightrope.records.record import TRAINING


def failures(summary: Path) -> list[dict[str, Any]]:
    """Return the results, measured trainings and cascades with status `failed`."""
    document = read_json(summary)
    trainings = [{**one, "variant": TRAINING} for one in document.get("training", ())]
    cascades = [
        {**one, "model": one["cascade"], "variant": CASCADE} for one in document.get("cascades", ())
    ]
    every = [*document["results"], *trainings, *cascades]
    return [one for one in every if one["status"] == "failed"]
