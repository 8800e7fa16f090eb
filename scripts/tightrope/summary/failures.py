"""Failures recorded in summary.json."""

import os
import sys
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from tightrope.artifacts.files import read_json
from tightrope.errors import ArtifactError
from tightrope.records.record import TRAINING


class Named(TypedDict):
    """A result."""

    model: str
    variant: str
    status: str
    reason: NotRequired[str | None]


class Trained(TypedDict):
    """A measured training."""

    model: str
    status: str
    reason: NotRequired[str | None]


class Reported(TypedDict):
    """What of summary.json can have failed."""

    results: list[Named]
    training: NotRequired[list[Trained]]


def failures(summary: Path) -> list[dict[str, Any]]:
    """Return the results and measured trainings with status `failed`."""
    document = read_json(summary, Reported)
    trainings = [{**one, "variant": TRAINING} for one in document.get("training", ())]
    return [one for one in (*document["results"], *trainings) if one["status"] == "failed"]


def exit_with_failures(summary: Path) -> None:
    """End the process with exit code 1 where a variant of `summary` failed."""
    try:
        found = failures(summary) if summary.is_file() else []
        failed = [f"{one['model']}/{one['variant']}: {one['reason']}" for one in found]
    except ArtifactError as error:
        failed = [str(error)]
    if failed:
        print(f"strict: {len(failed)} failed: " + "; ".join(failed), file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
