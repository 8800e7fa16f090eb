"""INT8 parts of summary.json: audits, operator sensitivities and int8-auto searches."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tightrope.artifacts.failures import failure_of
from tightrope.artifacts.files import read_json
from tightrope.variants import AUTO

Entry = dict[str, Any]
# records by (model, file stem)
Records = Mapping[tuple[str, str], Entry]
# number of tensors of an audit in the summary, and their fields
NOISIEST = 5
TENSOR = (
    *("operator", "tensor", "low", "high", "found_low", "found_high", "saturated", "levels"),
    *("sqnr_db", "channel_ratio", "weight_ratio", "findings"),
)
SEARCH = ("in_float", "smoothquant", "stop", "samples", "budget_points", "seconds")
TRIAL = ("delta", "delta_low", "delta_high", "flips", "verdict", "seconds")


def read_records(paths: Iterable[Path | str]) -> Records:
    """Read `artifacts/{model}/{kind}/{name}.json` files into a dict by (model, name)."""
    return {(Path(path).parent.parent.name, Path(path).stem): read_json(path) for path in paths}


def made_records(paths: Iterable[Path | str]) -> Records:
    """Read records as `read_records` does, without recorded failures."""
    return {key: one for key, one in read_records(paths).items() if failure_of(one) is None}


def with_int8(result: Entry, audits: Records, searches: Records) -> Entry:
    """Return a result with its `audit` and `search`, each None if missing.

    Audits are named by variant, searches by scheme and calibration.
    """
    model, calibration = result["model"], result["calibration"]
    audit = audits.get((model, result["variant"]))
    found = [
        record
        for (owner, name), record in searches.items()
        if result["precision"] == AUTO and (owner, calibration_of(name)) == (model, calibration)
    ]
    return {
        **result,
        "audit": audit_entry(audit) if audit else None,
        "search": search_entry(found[0]) if found else None,
    }


def calibration_of(name: str) -> str:
    """Return the calibration part of a `{scheme}-{calibration}` name."""
    return name.partition("-")[2]


def audit_entry(record: Entry) -> Entry:
    """Return the status of an audit with its evidence: answers and the noisiest tensors."""
    kept = {name: record[name] for name in ("status", "reason", "answers")}
    noisiest = sorted(record["tensors"], key=lambda tensor: tensor["sqnr_db"])[:NOISIEST]
    return {**kept, "tensors": [{name: one[name] for name in TENSOR} for one in noisiest]}


def search_entry(record: Entry) -> Entry:
    """Return `search` of an int8-auto result; a trial has the number of operators left in float."""
    return {
        **{name: record[name] for name in SEARCH},
        "operators": len(record["ranking"]),
        "trials": [
            {"in_float": len(trial["in_float"]), **{name: trial[name] for name in TRIAL}}
            for trial in record["trials"]
        ],
    }


def sensitivity_entries(model: str, records: Records) -> Entry:
    """Return a model's operator sensitivities by scheme and calibration, highest KL first."""
    return {
        name: {
            "samples": record["samples"],
            "operators": sorted(
                ({"operator": one, **fields} for one, fields in record["operators"].items()),
                key=lambda one: -one["kl"],
            ),
        }
        for (owner, name), record in records.items()
        if owner == model
    }
