"""From the records of audits, sensitivities and searches to what the summary tells of INT8."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tightrope.artifacts.failures import failure_of
from tightrope.artifacts.files import read_json
from tightrope.variants import AUTO

Entry = dict[str, Any]
# records by model and by the name of their file
Records = Mapping[tuple[str, str], Entry]
# how many of the tensors of an audit are told, and what of them
NOISIEST = 5
TENSOR = (
    *("operator", "tensor", "low", "high", "found_low", "found_high", "saturated", "levels"),
    *("sqnr_db", "channel_ratio", "weight_ratio", "findings"),
)
SEARCH = ("in_float", "smoothquant", "stop", "samples", "budget_points", "seconds")
TRIAL = ("delta", "delta_low", "delta_high", "flips", "verdict", "seconds")


def read_records(paths: Iterable[Path | str]) -> Records:
    """The records of `artifacts/{model}/{kind}/{name}.json` by model and name."""
    return {(Path(path).parent.parent.name, Path(path).stem): read_json(path) for path in paths}


def made_records(paths: Iterable[Path | str]) -> Records:
    """As `read_records`, without those that say why there is none."""
    return {key: one for key, one in read_records(paths).items() if failure_of(one) is None}


def with_int8(result: Entry, audits: Records, searches: Records) -> Entry:
    """A result with its `audit` and its `search`, each None where there is none.

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
    """The calibration in the name of a scheme and a calibration."""
    return name.partition("-")[2]


def audit_entry(record: Entry) -> Entry:
    """`audit` of a result: the answers and the noisiest tensors, as evidence for its status."""
    kept = {name: record[name] for name in ("status", "reason", "answers")}
    noisiest = sorted(record["tensors"], key=lambda tensor: tensor["sqnr_db"])[:NOISIEST]
    return {**kept, "tensors": [{name: one[name] for name in TENSOR} for one in noisiest]}


def search_entry(record: Entry) -> Entry:
    """`search` of a result of int8-auto; a trial tells how many operators stayed in float."""
    return {
        **{name: record[name] for name in SEARCH},
        "operators": len(record["ranking"]),
        "trials": [
            {"in_float": len(trial["in_float"]), **{name: trial[name] for name in TRIAL}}
            for trial in record["trials"]
        ],
    }


def sensitivity_entries(model: str, records: Records) -> Entry:
    """`sensitivity` of a model by scheme and calibration, the most sensitive operator first."""
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
