"""INT8 parts of summary.json: operator sensitivities and int8-auto searches."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tightrope.artifacts.content import read_artifact
from tightrope.artifacts.failures import failure_of
from tightrope.artifacts.files import require_type
from tightrope.summary.result_types import (
    OperatorSensitivity,
    Result,
    Search,
    Sensitivity,
    Trial,
    picked,
)
from tightrope.variants import AUTO

# records by (model, file stem)
Records = Mapping[tuple[str, str], dict[str, Any]]


def made_records(paths: Iterable[Path | str], kind: Any) -> Records:
    """Read files `artifacts/{model}/{kind}/{name}.json`, without recorded failures."""
    found = {path: read_artifact(path) for path in paths}
    made = {path: one for path, one in found.items() if failure_of(one) is None}
    for path, one in made.items():
        require_type(path, one, kind)
    return {key_of(path): one for path, one in made.items()}


def key_of(path: Path | str) -> tuple[str, str]:
    """Return model and name of `artifacts/{model}/{kind}/{name}.json`."""
    return Path(path).parent.parent.name, Path(path).stem


def with_search(result: Result, searches: Records) -> Result:
    """Return a result with its `search`, None if missing; named by scheme and calibration."""
    model, calibration = result["model"], result["calibration"]
    searched = searches.items() if result["precision"] == AUTO else ()
    found = [
        record
        for (owner, name), record in searched
        if (owner, name.partition("-")[2]) == (model, calibration)
    ]
    return {**result, "search": search_entry(found[0]) if found else None}


def search_entry(record: Mapping[str, Any]) -> Search:
    """Return `search` of an int8-auto result; a trial has the number of operators left in float."""
    trials: list[Trial] = [
        {**picked(Trial, one), "in_float": len(one["in_float"])} for one in record["trials"]
    ]
    return {**picked(Search, record), "trials": trials}


def sensitivity_entries(model: str, searches: Records) -> dict[str, Sensitivity]:
    """Return a model's operator sensitivities by scheme and calibration, highest KL first.

    `searches` that needed none are left out.
    """
    measured = {
        name: record["sensitivity"]
        for (owner, name), record in searches.items()
        if owner == model and record["sensitivity"]
    }
    return {
        name: {
            "samples": one["samples"],
            "operators": sorted(
                (
                    picked(OperatorSensitivity, {"operator": name, **fields})
                    for name, fields in one["operators"].items()
                ),
                key=lambda operator: -operator["kl"],
            ),
        }
        for name, one in measured.items()
    }
