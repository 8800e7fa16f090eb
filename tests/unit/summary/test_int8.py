"""What the summary tells of INT8: from three kinds of records to fields of results and models."""

from pathlib import Path
from typing import Any

from artifact_files import written
from tightrope.artifacts.failures import write_failure
from tightrope.summary.int8 import (
    audit_entry,
    made_records,
    sensitivity_entries,
    with_audit,
    with_search,
)
from tightrope.summary.own_records import OwnAudits

AUTO = "cpu-onnxruntime-int8-auto-minmax-64"
ANSWERS = {"samples": 128, "agreement": 0.9}


def tensor(operator: str, decibels: float) -> dict[str, Any]:
    names = ("low", "high", "measured_low", "measured_high", "saturated", "levels")
    facts = dict.fromkeys([*names, "channel_ratio", "weight_ratio"], 1.0)
    own = {"operator": operator, "tensor": "t", "sqnr_db": decibels, "findings": ["too wide"]}
    return {**facts, **own, "channel_bounds": [0.5] * 384}


def audit(count: int = 7) -> dict[str, Any]:
    tensors = [tensor(f"layer.{index}", 40.0 - index) for index in range(count)]
    facts = {"schema": 1, "variant": AUTO, "engine_sha256": "e", "answers": ANSWERS}
    return {**facts, "status": "collapsed", "reason": "collapsed: why", "tensors": tensors}


def search(in_float: list[str]) -> dict[str, Any]:
    tried = {"gained": 3, "lost": 5, "flips": 9, "delta": -0.002, "delta_low": -0.009}
    trial = {**tried, "in_float": in_float, "delta_high": 0.005, "verdict": "kept", "seconds": 3.5}
    trial["smoothquant"] = 0.8
    facts = {"schema": 2, "operators": 3, "budget_points": 1.0, "samples": 1024, "seconds": 3.5}
    facts |= {"smoothquant": 0.8, "sensitivity": None}
    return {**facts, "in_float": in_float, "trials": [trial], "sources": {}}


def result(variant: str, precision: str, calibration: str | None) -> dict[str, Any]:
    return {"model": "m", "variant": variant, "precision": precision, "calibration": calibration}


def test_a_record_is_known_by_the_model_and_the_name_of_its_path(tmp_path: Path) -> None:
    for model in ("m", "n"):
        path = tmp_path / f"artifacts/{model}/audit/{AUTO}.json"
        path.parent.mkdir(parents=True)
        written(path, {**audit(), "answers": None, "tensors": [], "reason": model})
    found = dict(OwnAudits(sorted(tmp_path.rglob("*.json")), {}))
    reasons = {key: one["reason"] for key, one in found.items()}
    assert reasons == {("m", AUTO): "m", ("n", AUTO): "n"}
    # what could not be searched has none
    paths = [tmp_path / f"artifacts/m/search/u8s8-minmax-{count}.json" for count in (8, 64)]
    write_failure(paths[0], reason="not searched: why", transient=False)
    written(paths[1], search(["a"]))
    assert made_records(paths, dict[str, Any]) == {("m", "u8s8-minmax-64"): search(["a"])}


def test_an_audit_keeps_its_five_noisiest_tensors_without_lists_of_channels() -> None:
    found = audit_entry(audit())
    assert [one["operator"] for one in found["tensors"]] == [f"layer.{i}" for i in (6, 5, 4, 3, 2)]
    assert [one["sqnr_db"] for one in found["tensors"]] == [34.0, 35.0, 36.0, 37.0, 38.0]
    assert found["tensors"][0]["findings"] == ["too wide"]
    assert "channel_bounds" not in found["tensors"][0]
    assert (found["status"], found["reason"]) == ("collapsed", "collapsed: why")
    assert found["answers"] == ANSWERS and set(found) == {"status", "reason", "answers", "tensors"}
    # an engine that quantizes itself
    assert audit_entry(audit(count=0))["tensors"] == []
    audits = {("m", AUTO): audit(), ("n", "cpu-openvino-int8-nncf-64"): audit()}
    assert with_audit(result(AUTO, "int8-auto", "minmax-64"), audits)["audit"] is not None
    other = result("cpu-openvino-int8-nncf-64", "int8", "nncf-64")
    assert with_audit(other, audits)["audit"] is None


def test_a_search_tells_how_many_operators_each_trial_left_in_float() -> None:
    records = {("m", "u8s8-minmax-64"): search(["a", "b"])}
    found = with_search(result(AUTO, "int8-auto", "minmax-64"), records)
    (trial,) = found["search"].pop("trials")
    assert found["search"] == {
        **{"in_float": ["a", "b"], "smoothquant": 0.8, "samples": 1024},
        **{"budget_points": 1.0, "seconds": 3.5, "operators": 3},
    }
    assert trial == {
        **{"smoothquant": 0.8, "in_float": 2, "flips": 9, "verdict": "kept", "seconds": 3.5},
        **{"delta": -0.002, "delta_low": -0.009, "delta_high": 0.005},
    }
    # it belongs to int8-auto of its own model and calibration alone
    records = {
        ("n", "u8s8-minmax-64"): search(["other model"]),
        ("m", "u8s8-minmax-640"): search(["more samples"]),
        ("m", "u8s7-minmax-64"): search(["own"]),
    }
    own = with_search(result(AUTO, "int8-auto", "minmax-64"), records)
    assert own["search"]["in_float"] == ["own"]
    for precision, calibration in (("int8", "minmax-64"), ("int8-auto", "entropy-64")):
        assert with_search(result("v", precision, calibration), records)["search"] is None


def test_operators_come_in_the_order_of_their_divergence() -> None:
    fields = {"agreement": 1.0, "logit_error": 0.01, "sqnr_db": 40.0}
    operators = {name: {**fields, "kl": kl} for name, kl in (("a", 0.0), ("b", 0.02), ("c", 0.01))}
    record = {**search(["b"]), "sensitivity": {"samples": 128, "operators": operators}}
    searches = {("m", "u8s8-minmax-64"): record, ("n", "u8s8-x"): record}
    found = sensitivity_entries("m", {**searches, ("m", "u8s8-minmax-8"): search([])})
    assert list(found) == ["u8s8-minmax-64"]
    assert found["u8s8-minmax-64"]["samples"] == 128
    order = [{"operator": name, **operators[name]} for name in "bca"]
    assert found["u8s8-minmax-64"]["operators"] == order
