"""Which records of INT8 belong to which result."""

from pathlib import Path
from typing import Any

from artifact_files import written
from msgspec.structs import replace
from results import result
from tightrope.artifacts.failures import write_failure
from tightrope.summary.accuracy import made_records, sensitivity_entries
from tightrope.summary.models import with_search

AUTO = "cpu-onnxruntime-int8-auto-minmax-64"


def search(in_float: str) -> dict[str, Any]:
    facts = {"schema": 2, "operators": 3, "budget_points": 1.0, "samples": 1024, "seconds": 3.5}
    own = {"smoothquant": 0.8, "sensitivity": None, "in_float": [in_float], "trials": []}
    return {**facts, **own, "sources": {}}


def test_a_record_is_known_by_the_model_and_the_name_of_its_path(tmp_path: Path) -> None:
    # what could not be searched has none
    paths = [tmp_path / f"artifacts/m/search/u8s8-minmax-{count}.json" for count in (8, 64)]
    write_failure(paths[0], reason="not searched: why", transient=False)
    written(paths[1], search("a"))
    assert made_records(paths, dict[str, Any]) == {("m", "u8s8-minmax-64"): search("a")}


def test_a_search_belongs_to_int8_auto_of_its_own_model_and_calibration_alone() -> None:
    records = {
        ("n", "u8s8-minmax-64"): search("other model"),
        ("m", "u8s8-minmax-640"): search("more samples"),
        ("m", "u8s7-minmax-64"): search("own"),
    }
    for precision, calibration, told in (
        ("int8-auto", "minmax-64", ["own"]),
        ("int8", "minmax-64", None),
        ("int8-auto", "entropy-64", None),
    ):
        one = replace(result(AUTO), precision=precision, calibration=calibration)
        found = with_search(one, records).search
        assert (found and found.in_float) == told
    record = {**search("b"), "sensitivity": {"samples": 128, "operators": {}}}
    searches = {("m", "u8s8-minmax-64"): record, ("n", "u8s8-x"): record}
    found = sensitivity_entries("m", {**searches, ("m", "u8s8-minmax-8"): search("a")})
    assert list(found) == ["u8s8-minmax-64"]
