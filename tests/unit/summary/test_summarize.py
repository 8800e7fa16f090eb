import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas
import pytest
from accuracy_records import accuracy_record
from artifact_files import without_digests, written
from disturbed import facts
from gpu_states import state
from manifests import CHECKPOINT, ENGINE, SPLIT
from raced import planted, race_record, race_shape
from tightrope.artifacts.descent import require_model
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import clear_folder, write_manifest
from tightrope.errors import ArtifactError
from tightrope.machine.host import fingerprint, named
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.family import FAMILY, FamilyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.race import RaceRecord, beaten_by
from tightrope.records.record import Record
from tightrope.records.traffic import TrafficRecord
from tightrope.summary.document import read_summary
from tightrope.summary.inputs import Inputs, Settings
from tightrope.summary.models import by_model, evaluation_split
from tightrope.summary.own_records import (
    Engines,
    OwnAudits,
    engines_in_use,
    read_own_race,
    require_data,
)
from tightrope.summary.results import not_planned_entry
from tightrope.summary.runs import Machine, add_hosts, read_runs
from tightrope.summary.summarize import summarize

HOST = {
    "cpu": "Some CPU",
    "isa": ["avx2"],
    "cores": 2,
    "memory_bytes": 1,
    "gpu": None,
    "driver": None,
    "python": "3.11.7",
}
SHAPE = {"batch": 1, "sequence": 64}
OWN = [[0.004 + 0.0001 * (i % 3), 0.0041] for i in range(10)]
THEIRS = [[0.01 + 0.0001 * (i % 3), 0.0101] for i in range(10)]
BASELINE, QUICK, FAILED = "cpu-pytorch-fp32", "cpu-openvino-int8-nncf-64", "cpu-onnxruntime-fp32"
PLAIN = "cpu-openvino-fp32"


MISSING = ("m", "cuda-pytorch-fp32", "no NVIDIA GPU")
BASELINES = {"m": {"cpu": BASELINE, "cuda": "cuda-pytorch-fp32"}}
EXAMPLES = "".join(
    json.dumps({"label": index % 2, "text": f"<script> {index}"}) + "\n" for index in range(1000)
)
OPTIONS = {
    "route": "onnx",
    "blobs": False,
    "static_programs": None,
    "buckets": {"batch": [1, 8], "sequence": [32, 64]},
}


def write_run(
    folder: Path, variant: str, loads: dict[str, Any] | None = None
) -> tuple[Path, Path, Path]:
    """engine.json, latency.json and accuracy.json of one variant of model m."""
    engine = folder / "artifacts/m/engines" / variant / "engine.json"
    latency = folder / f"reports/m/{variant}.latency.json"
    accuracy = folder / f"reports/m/{variant}.accuracy.json"
    failed = {"status": "failed", "reason": "no such operator"} if variant == FAILED else {}
    built = failed or {"status": "ok"}
    (clear_folder(engine) / "weights").write_bytes(b"x" * (50 if variant == QUICK else 200))
    own = {"variant": variant, "precision": variant.split("-")[2], "options": OPTIONS}
    write_manifest(engine, **{**ENGINE, **own, **built})
    library = variant.split("-")[1]
    identity = {"model": "m", "variant": variant, "host": HOST, "libraries": {library: "1.2"}}
    identity["engine_sha256"] = sha256(engine)
    alone = variant == BASELINE
    shape = {
        **SHAPE,
        "first_call_s": 0.02,
        "blocks_s": THEIRS if alone else OWN,
        "baseline_blocks_s": None if alone else THEIRS,
        **(loads or facts(0, 10)),
        "stop": "minimum" if alone else "width",
        "threads_busy": 2,
        "cores_used": 1.9,
        "idle_share": 0.0,
    }
    LatencyRecord(
        **identity,
        **failed,
        threads=2,
        plan={"pairs": len(OWN), "calls": None, "loads": 1},
        processors=[0, 1],
        load_s=0.3,
        first_call_s=0.02,
        peak_rss_bytes=10**9,
        shapes=[] if failed else [shape, {**shape, "batch": 8}],
    ).write(latency)
    accuracy_record(
        **identity,
        **failed,
        data_sha256=sha256(write_split(folder)),
        labels=None if failed else [0, 1] * 500,
        predictions=[] if failed else [0, 1] * 499 + [0, int(alone)],
        margins=[] if failed else [1.0] * 1000,
        logits=[] if failed else [[0.5, 0.25]] * 999 + [[0.5, 0.25 + alone]],
    ).write(accuracy)
    return engine, latency, accuracy


def write_race(folder: Path, **milliseconds: float) -> Path:
    """The race of these at both shapes, by their milliseconds a call."""
    names = {"base": BASELINE, "quick": QUICK, "plain": PLAIN}
    seconds = {names[word]: 0.001 * one for word, one in milliseconds.items()}
    shape = race_shape(planted(seconds), pairs=[(QUICK, PLAIN)] if "plain" in milliseconds else [])
    shape["out"] = {
        loser: {"round": 24, "by": winner}
        for loser, winner in beaten_by(shape, list(seconds), 1).items()
    }
    path = folder / "reports/m/cpu.race.json"
    race_record([shape, {**shape, "batch": 8}], host=HOST).write(path)
    return path


def write_model(folder: Path) -> tuple[Path, Path]:
    """checkpoint.json and evaluation.json of model m."""
    checkpoint = folder / "artifacts/m/checkpoint/checkpoint.json"
    (clear_folder(checkpoint) / "model.safetensors").write_bytes(b"weights")
    write_manifest(checkpoint, **CHECKPOINT)
    return checkpoint, write_split(folder)


def write_split(folder: Path) -> Path:
    """evaluation.json of model m, of the 1000 examples in its data."""
    texts = folder / "artifacts/m/data/evaluation.jsonl"
    texts.parent.mkdir(parents=True, exist_ok=True)
    texts.write_text(EXAMPLES)
    split = folder / "artifacts/m/splits/evaluation.json"
    name = f"../data/{texts.name}"
    files = {name: {"sha256": sha256(texts), "size_bytes": texts.stat().st_size}}
    rows = {"file": name, "rows": [0, 1000, 1], "samples": 1000}
    written(split, {**SPLIT, **rows, "files": files, "schema": 1})
    return split


def write_traffic(folder: Path, **fields: Any) -> Path:
    """traffic.json of the baseline of model m, one padding, offline alone."""
    path = folder / f"reports/m/{BASELINE}.traffic.json"
    offline = {"samples": 400, "samples_per_s": 80.0, "tokens": 30, "padded_tokens": 10}
    offline["foreign_cores"] = 0.0
    facts = {
        "host": HOST,
        "libraries": {"mlcommons-loadgen": "6.0.17"},
        "engine_sha256": sha256(write_run(folder, BASELINE)[0]),
        "tests": [
            {"name": "fixed", "scenario": "offline", "round": one, "valid": True, **offline}
            for one in (1, 2, 3)
        ],
        "answers": {"fixed": {"predictions": [0, 1], "margins": [1.0, 1.0]}},
        **fields,
    }
    TrafficRecord(
        model="m",
        variant=BASELINE,
        threads=2,
        plan={"scenarios": ["offline"], "padding": ["fixed"], "batch": 4, "p99_bound_s": 0.1},
        longest=20,
        lengths=[20, 10],
        **facts,
    ).write(path)
    return path


def inputs_of(folder: Path, *runs: tuple[Path, Path, Path], **records: Any) -> Inputs:
    """What a summary of these runs of model m is written from."""
    engines, latencies, accuracies = zip(*runs, strict=True)
    checkpoint, split = write_model(folder)
    model = {"checkpoints": [checkpoint], "splits": [split]}
    return Inputs(engines=engines, latencies=latencies, accuracies=accuracies, **model, **records)


def summarized(
    folder: Path,
    variants: tuple[str, ...] = (BASELINE, QUICK, FAILED),
    traffic: tuple[Path, ...] = (),
    quantized: dict[str, list[Path]] | None = None,
    race: dict[str, float] | None = None,
    loads: dict[str, dict[str, Any]] | None = None,
    baselines: dict[str, dict[str, str]] = BASELINES,
    **options: Any,
) -> Any:
    """The summary of these variants; `race` is that of `write_race`, by default QUICK alone.

    `loads` are `pairs` and `foreign_cores` of variants that other load disturbed.
    """
    runs = [write_run(folder, one, (loads or {}).get(one, facts(0, 10))) for one in variants]
    records = {"races": [write_race(folder, **(race or {"quick": 4.0}))], "traffic": traffic}
    inputs = inputs_of(folder, *runs, **records, **(quantized or {}))
    settings = Settings(unavailable=[MISSING], baselines=baselines, budget_points=1.0, **options)
    targets = {"json_target": folder / "summary.json", "csv_target": folder / "summary.csv"}
    summarize(inputs, settings, **targets)
    document = without_digests(json.loads((folder / "summary.json").read_text()))
    assert read_summary(folder / "summary.json") == document, "a field has no type"
    return document


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run")
    summarized(path)
    return path


@pytest.fixture
def summary(folder: Path) -> dict[str, Any]:
    return without_digests(json.loads((folder / "summary.json").read_text()))


def by_variant(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {result["variant"]: result for result in summary["results"]}


def test_it_has_every_field_of_the_contract(summary: dict[str, Any]) -> None:
    assert summary["schema"] == 3
    assert set(summary) >= {"hosts", "models", "results", "recommendations", "races"}
    (host,) = summary["hosts"].values()
    assert set(host) == {*HOST, "gpu_uuids", "libraries"}
    assert host["libraries"] == {"pytorch": "1.2", "openvino": "1.2", "onnxruntime": "1.2"}
    (model,) = summary["models"].values()
    assert set(model) >= {"task", "parameters", "checkpoint_sha256", "data", "baselines"}
    assert (model["chance"], model["thumbnails"]) == (0.5, {})
    assert model["baselines"] == {"cpu": BASELINE}, "of devices that ran something"
    assert (summary["goal"], summary["goals"], summary["costs"]) == (None, [], [])
    assert summary["quantization"] == summary["traffic"] == []


def test_every_variant_is_in_it_with_the_same_fields(summary: dict[str, Any]) -> None:
    found = by_variant(summary)
    assert {name: (one["status"], one["baseline"]) for name, one in found.items()} == {
        BASELINE: ("ok", BASELINE),
        QUICK: ("ok", BASELINE),
        FAILED: ("failed", BASELINE),
        "cuda-pytorch-fp32": ("unavailable", None),
    }
    assert len({frozenset(result) for result in found.values()}) == 1
    assert found[FAILED]["reason"] == "no such operator"
    missing, quick = found["cuda-pytorch-fp32"], found[QUICK]
    assert (missing["reason"], missing["options"]) == ("no NVIDIA GPU", None)
    assert (quick["host"], quick["options"]) == (fingerprint(HOST), OPTIONS)
    accuracy = quick["accuracy"]
    assert (accuracy["top1"], accuracy["flips"]) == (0.999, 1)
    assert (accuracy["delta"], accuracy["verdict"]) == (-0.001, "kept")
    assert found[BASELINE]["accuracy"]["delta"] == 0


def test_another_baseline_of_the_model_is_what_its_variants_are_judged_against(tmp_path):
    baselines = {"m": {"cpu": QUICK, "cuda": "cuda-onnxruntime-fp32"}}
    summary = summarized(tmp_path, baselines=baselines)
    found = by_variant(summary)
    assert summary["models"]["m"]["baselines"] == {"cpu": QUICK}
    assert {found[name]["baseline"] for name in (BASELINE, QUICK, FAILED)} == {QUICK}
    assert (found[QUICK]["accuracy"]["delta"], found[QUICK]["accuracy"]["flips"]) == (0, 0)
    assert (found[BASELINE]["accuracy"]["delta"], found[BASELINE]["accuracy"]["flips"]) == (
        0.001,
        1,
    )


def test_the_texts_of_changed_answers_come_from_the_evaluation_split(summary):
    assert by_variant(summary)[QUICK]["accuracy"]["flipped"] == [
        {
            "index": 999,
            "text": "<script> 999",
            "label": "good",
            "baseline": "good",
            "prediction": "bad",
            "baseline_margin": 1.0,
            "margin": 1.0,
        }
    ]
    assert by_variant(summary)[BASELINE]["accuracy"]["flipped"] == []


def test_a_changed_text_of_the_evaluation_split_is_an_error_that_names_the_file(tmp_path):
    summarized(tmp_path)
    file = tmp_path / "artifacts/m/data/evaluation.jsonl"
    file.write_text(EXAMPLES.replace("script", "edited"))
    with pytest.raises(ArtifactError, match=r"evaluation\.jsonl: its content is not the one"):
        evaluation_split(tmp_path / "artifacts/m/splits/evaluation.json")


def test_inputs_without_a_text_have_none_to_tell(tmp_path: Path) -> None:
    fields = {"source": "random", "labels": None, "rows": [0, 2, 1], "samples": 2}
    write_manifest(tmp_path / "evaluation.json", **{**SPLIT, **fields})
    found = evaluation_split(tmp_path / "evaluation.json")
    assert (found.texts, found.labels) == ([None, None], None)


def test_the_fast_variant_is_recommended_for_each_shape(summary: dict[str, Any]) -> None:
    assert [one["shape"] for one in summary["recommendations"]] == [SHAPE, {**SHAPE, "batch": 8}]
    assert {one["variant"] for one in summary["recommendations"]} == {QUICK}
    rejected = {one["variant"] for one in summary["recommendations"][0]["rejected"]}
    assert rejected == {BASELINE, FAILED, "cuda-pytorch-fp32"}


def test_int8_is_put_against_the_same_engine_in_float_at_each_shape(tmp_path: Path) -> None:
    summary = summarized(tmp_path, (BASELINE, QUICK, PLAIN), race={"quick": 4.0, "plain": 4.0})
    assert [one["shape"] for one in summary["quantization"]] == [SHAPE, {**SHAPE, "batch": 8}]
    first = summary["quantization"][0]
    names = ("model", "host", "device", "engine", "unquantized", "variant")
    assert tuple(first[name] for name in names) == (
        *("m", fingerprint(HOST), "cpu", "openvino"),
        *(PLAIN, QUICK),
    )
    told = {"shape", "verdict", "why", "failed", "speedup", "accuracy", "others"}
    assert set(first) == {*names, *told}
    # as fast as each other, and nothing gained by INT8
    assert first["speedup"]["ratio"] == pytest.approx(1, rel=0.01)
    assert first["verdict"] == "undecided"
    assert first["accuracy"]["flips"] == 1


def test_a_race_with_its_engine_in_float_is_what_counts(tmp_path: Path) -> None:
    summary = summarized(tmp_path, (BASELINE, QUICK, PLAIN), race={"quick": 4.0, "plain": 5.0})
    assert [one["verdict"] for one in summary["quantization"]] == ["quantize"] * 2
    for entry in summary["quantization"]:
        assert entry["unquantized"] == PLAIN
        assert entry["speedup"]["ratio"] == pytest.approx(1.25, rel=0.01)
    first, second = summary["races"]
    assert (first["shape"], second["shape"]) == (SHAPE, {**SHAPE, "batch": 8})
    assert (first["variant"], first["status"], first["out"]) == (QUICK, "decided", {PLAIN: QUICK})
    rows = {name: one["latency"][0] for name, one in by_variant(summary).items() if one["latency"]}
    assert {name for name, row in rows.items() if row["raced"]} == {QUICK, PLAIN}
    # measured beside the baseline both took the same time
    times = rows[PLAIN]["paired_s"] / rows[QUICK]["paired_s"]
    assert times == pytest.approx(1.25, rel=0.01)
    assert rows[BASELINE]["paired_s"] == rows[BASELINE]["p50_s"]


def test_other_load_leaves_no_number_and_makes_the_choice_provisional(tmp_path: Path) -> None:
    disturbed = {PLAIN: facts(8, 2)}
    variants = (BASELINE, QUICK, PLAIN)
    summary = summarized(tmp_path, variants, race={"quick": 4.0}, loads=disturbed)
    row = by_variant(summary)[PLAIN]["latency"][0]
    assert (row["speedup"]["ratio"], row["paired_s"], row["samples"]) == (None, None, 0)
    assert row["disturbed"].startswith("only 2 of 10 pairs of blocks were undisturbed")
    for one in summary["recommendations"]:
        assert (one["variant"], one["provisional"], one["disturbed"]) == (QUICK, True, [PLAIN])
    options = {"race": {"quick": 4.0}, "loads": disturbed, "accept_disturbed": True}
    row = by_variant(summarized(tmp_path, variants, **options))[PLAIN]["latency"][0]
    assert row["provisional"] is True
    assert row["speedup"]["ratio"] > 1 and row["paired_s"] > 0


def test_a_goal_decides_the_recommendation_at_its_shape_alone(tmp_path: Path) -> None:
    variants, race = (BASELINE, QUICK, PLAIN), {"quick": 4.0, "plain": 5.0}
    bounds = {"p99_ms": None, "memory_mb": None, "accuracy_points": 0.01}
    goal = {"minimize": "latency", "shape": SHAPE, "traffic": None, **bounds}
    summary = summarized(tmp_path, variants, race=race, goal=goal, prices={"*": 0.36})
    assert summary["goal"] == goal
    (decision,) = summary["goals"]
    # the others changed one answer of 1000: only the baseline has surely lost nothing
    assert (decision["variant"], decision["shape"]) == (BASELINE, SHAPE)
    (bound,) = decision["bounds"]
    assert (bound["variant"], bound["more"]) == (QUICK, pytest.approx(1.5, rel=0.05))
    here, other = summary["recommendations"]
    assert (here["variant"], here["why"]) == (BASELINE, decision["sentence"])
    assert (other["variant"], other["why"]) == (
        QUICK,
        "the fastest of the 3 variants that keep the accuracy",
    )
    rows = {
        (result["variant"], *row.values()): None
        for result in summary["results"]
        for row in [{key: one[key] for key in SHAPE} for one in result["latency"]]
    }
    priced = {(one["variant"], *one["shape"].values()): one for one in summary["costs"]}
    assert set(priced) == set(rows)
    seconds = by_variant(summary)[QUICK]["latency"][0]["paired_s"]
    # an hour for 0.36 is 0.0001 per second
    assert priced[QUICK, 1, 64]["cost_per_million"] == pytest.approx(1e6 * seconds * 0.0001)


def test_the_csv_has_the_costs_of_each_row(tmp_path: Path) -> None:
    prepared = {"m": {BASELINE: [], QUICK: []}}
    summary = summarized(tmp_path, (BASELINE, QUICK), prices={"*": 0.36}, prepared=prepared)
    frame = pandas.read_csv(tmp_path / "summary.csv").set_index(["variant", "latency.batch"])
    for cost in summary["costs"]:
        row = frame.loc[cost["variant"], cost["shape"]["batch"]]
        for name in ("cost_per_million", "saved_s", "break_even_inferences", "prepare_s"):
            value = row[f"cost.{name}"]
            assert value == pytest.approx(cost[name]) or (pandas.isna(value) and cost[name] is None)
    assert frame.loc[QUICK, 1]["cost.break_even_inferences"] > 0
    # without a price no column is about money
    bounds = {"p99_ms": None, "memory_mb": None, "accuracy_points": None}
    goal = {"minimize": "latency", "shape": None, "traffic": None, **bounds}
    summarized(tmp_path, (BASELINE, QUICK), goal=goal, prepared={"m": {QUICK: []}})
    header = set(pandas.read_csv(tmp_path / "summary.csv"))
    assert {"cost.saved_s", "cost.break_even_inferences"} <= header
    assert not {"cost.price_per_hour", "cost.cost_per_million"} & header


def flattened(result: dict[str, Any], shape: dict[str, Any]) -> dict[str, Any]:
    """Names with dots for every number, text and null of one row."""
    flat: dict[str, Any] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                walk(f"{prefix}.{key}", item)
        else:
            flat[prefix.removeprefix(".")] = value

    nested = ("latency", "executed", "options", "audit", "search")
    walk("", {key: value for key, value in result.items() if key not in nested})
    flat.pop("accuracy.flipped", None)
    sometimes = ("energy_j", "gpu", "streams")
    unknown = [name for name in sometimes if name in shape and shape[name] is None]
    walk("latency", {name: value for name, value in shape.items() if name not in unknown})
    return flat


def test_the_csv_holds_the_same_values(folder: Path, summary: dict[str, Any]) -> None:
    frame = pandas.read_csv(folder / "summary.csv", dtype=str, keep_default_na=False)
    expected = [
        flattened(result, shape)
        for result in summary["results"]
        for shape in result["latency"] or [{}]
    ]
    assert len(frame) == len(expected) == 6
    assert not [name for name in frame if name.startswith("cost.")]
    for name in ("size_bytes", "latency.batch", "latency.samples", "accuracy.samples"):
        assert all(text.isdigit() or not text for text in frame[name]), name
    compared = 0
    for row, values in zip(frame.to_dict("records"), expected, strict=True):
        for name, value in values.items():
            text = row[name]
            if value is None:
                assert text == "", name
            elif isinstance(value, list):
                assert text == "; ".join(value), name
            elif isinstance(value, bool | str):
                assert text == str(value), name
            else:
                assert float(text) == value, name
                compared += 1
        assert not [name for name in set(row) - set(values) if row[name]]
        left_out = ("executed", "options", "audit", "search")
        assert not [name for name in row if name.startswith(left_out)]
        assert "accuracy.flipped" not in row and "accuracy.kl" in row
        assert row["baseline"] == ("" if values["status"] == "unavailable" else BASELINE)
    assert compared > 60


def test_energy_and_the_gpu_are_columns_where_a_row_has_them(folder: Path, tmp_path: Path) -> None:
    states = [state(), state(sm_clock_mhz=1410, throttled=["power cap", "thermal slowdown"])]
    measured = {"energy_j": [2.0] * 10, "gpu": states * 5}
    summarized(tmp_path, loads={QUICK: {**facts(0, 10), **measured}})
    frame = pandas.read_csv(tmp_path / "summary.csv", dtype=str, keep_default_na=False)
    rows = {row["variant"]: row for row in frame.to_dict("records")}
    calls = sum(len(block) for block in OWN)
    assert float(rows[QUICK]["latency.energy_j"]) == pytest.approx(20 / calls)
    assert rows[QUICK]["latency.gpu.lowest_sm_clock_mhz"] == "1410"
    assert rows[QUICK]["latency.gpu.throttled"] == "power cap; thermal slowdown"
    assert rows[BASELINE]["latency.energy_j"] == rows[BASELINE]["latency.gpu.throttled"] == ""
    assert "latency.gpu" not in frame
    without = pandas.read_csv(folder / "summary.csv")
    assert not [name for name in without if name.startswith(("latency.energy", "latency.gpu"))]


def test_nothing_but_the_date_changes_on_a_repeat(summary: dict[str, Any], tmp_path: Path) -> None:
    again = summarized(tmp_path)
    for one in (again, summary):
        del one["created"]
        for result in one["results"]:
            del result["measured"], result["engine_sha256"]
    assert again == summary


def test_what_was_measured_under_traffic_is_in_it_with_its_host(tmp_path: Path) -> None:
    other = {**HOST, "cpu": "Other CPU"}
    files, given = ["config/config.yaml", "config/mine.yaml"], ["calibration={samples: [256]}"]
    traffic = (write_traffic(tmp_path, host=other),)
    summary = summarized(tmp_path, traffic=traffic, configuration=files, overrides=given)
    assert (summary["configuration"], summary["overrides"]) == (files, given)
    (entry,) = summary["traffic"]
    assert (entry["model"], entry["variant"], entry["status"]) == ("m", BASELINE, "ok")
    (row,) = entry["rows"]
    assert (row["padding"], row["samples_per_s"], row["padding_share"]) == ("fixed", 80.0, 0.25)
    assert entry["host"] == fingerprint(other) != fingerprint(HOST)
    assert set(summary["hosts"]) == {fingerprint(HOST), fingerprint(other)}
    host = summary["hosts"][fingerprint(other)]
    assert host == {**other, "gpu_uuids": [], "libraries": {"mlcommons-loadgen": "6.0.17"}}
    assert entry["loadgen"] == "6.0.17"


def test_the_cards_of_one_kind_that_were_measured_are_one_host_with_their_uuids() -> None:
    cards = [{**HOST, "gpu": "NVIDIA L4", "gpu_uuid": uuid} for uuid in ("GPU-b", "GPU-a", "GPU-b")]
    records = [Record(model="m", variant="v", host=card, libraries={}) for card in cards]
    found: dict[str, Any] = {}
    add_hosts(found, map(Machine.of, records))
    (host,) = found.values()
    assert (host["gpu"], host["gpu_uuids"]) == ("NVIDIA L4", ["GPU-a", "GPU-b"])


def test_hosts_with_names_are_apart_though_they_are_alike() -> None:
    known = {"model": "m", "variant": "v", "libraries": {}}
    records = [Record(host=named(HOST, name), **known) for name in ("genoa", "rome")]
    # what ended a job on the third may have been written elsewhere
    records += [Record(host=named(HOST, "h100"), status="failed", **known)]
    found: dict[str, Any] = {}
    add_hosts(found, map(Machine.of, records))
    assert {key: one["name"] for key, one in found.items()} == {"genoa": "genoa", "rome": "rome"}
    reason = "not supported by this CPU"
    entry = not_planned_entry("m", "cpu@rome-openvino-bf16", reason, "unavailable")
    assert (entry["host"], entry["device"]) == ("rome", "cpu")


def test_what_is_known_of_int8_stands_with_its_result_and_its_model(tmp_path: Path) -> None:
    auto, folder = "cpu-onnxruntime-int8-auto-minmax-64", tmp_path / "artifacts/m"
    shares = dict.fromkeys(("agreement", "commonest", "float_commonest", "chance"), 0.5)
    known = {key: {"value": 0.9, "low": 0.8, "high": 1.0} for key in ("accuracy", "float_accuracy")}
    answers = {"samples": 128, **shares, **known}
    facts = {"status": "ok", "reason": None, "answers": answers, "tensors": []}
    found = {
        "in_float": ["a"],
        "smoothquant": 0.8,
        "operators": 1,
        "samples": 1024,
        "seconds": 3.0,
        "budget_points": 1.0,
        "trials": [],
    }
    fields = {"agreement": 1.0, "logit_error": 0.1, "kl": 0.02, "sqnr_db": 30.0}
    records = {
        f"audit/{auto}": {**facts, "engine_sha256": sha256(write_run(tmp_path, auto)[0])},
        "search/u8s8-minmax-64": {
            **found,
            "sensitivity": {"samples": 128, "operators": {"a": fields}},
        },
    }
    paths = {}
    for name, record in records.items():
        path = folder / f"{name}.json"
        path.parent.mkdir(parents=True)
        written(path, record)
        paths[{"audit": "audits", "search": "searches"}[path.parent.name]] = [path]
    summary = summarized(tmp_path, (BASELINE, auto), quantized=paths, race={"base": 9.0})
    results = by_variant(summary)
    assert results[auto]["audit"] == facts
    assert results[auto]["search"] == found
    sensitive = {"samples": 128, "operators": [{"operator": "a", **fields}]}
    assert summary["models"]["m"]["sensitivity"] == {"u8s8-minmax-64": sensitive}
    for name in (BASELINE, MISSING[1]):
        assert (results[name]["audit"], results[name]["search"]) == (None, None)
    header = (tmp_path / "summary.csv").read_text().partition("\n")[0].split(",")
    assert "calibration" in header
    assert not [name for name in header if name.startswith(("audit", "search"))]


@pytest.mark.parametrize("kind", ["latency", "accuracy"])
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("model", "other", "the record of .* of model other, not of .* of m"),
        ("variant", "cpu-tvm-fp32", "the record of cpu-tvm-fp32 of model m, not of"),
        ("engine_sha256", "0" * 64, "measured with another engine than the one in use"),
        ("engine_sha256", None, "measured with another engine than the one in use"),
    ],
)
def test_a_record_of_another_model_variant_or_engine_is_refused(
    tmp_path: Path, kind: str, field: str, value: str | None, words: str
) -> None:
    runs = write_run(tmp_path, BASELINE)
    path = runs[("engine", "latency", "accuracy").index(kind)]
    written(path, {**json.loads(path.read_text()), field: value})
    inputs = inputs_of(tmp_path, runs)
    settings = Settings(unavailable=[], baselines={"m": {"cpu": BASELINE}}, budget_points=1.0)
    with pytest.raises(ArtifactError, match=rf"{kind}\.json: {words}.*; delete it and run again"):
        read_runs(inputs, by_model(inputs.splits), settings)


def test_predictions_on_other_data_are_refused(tmp_path: Path) -> None:
    _, split = write_model(tmp_path)
    record = AccuracyRecord.read(write_run(tmp_path, BASELINE)[2])
    require_data("a.json", record, split, sha256(split))
    record.data_sha256 = "0" * 64
    with pytest.raises(ArtifactError, match=r"a\.json: predictions on other data than .*; delete"):
        require_data("a.json", record, split, sha256(split))


def test_an_audit_or_a_race_of_other_engines_or_of_another_model_is_refused(tmp_path: Path) -> None:
    in_use = engines_in_use([write_run(tmp_path, QUICK)[0]])
    path = tmp_path / f"artifacts/m/audit/{QUICK}.json"
    audit = {"status": "ok", "reason": None, "answers": None, "tensors": []}
    written(path, {**audit, "engine_sha256": "0" * 64})
    with pytest.raises(ArtifactError, match=r"\.json: measured with another engine"):
        OwnAudits([path], in_use)["m", QUICK]
    race = write_race(tmp_path, quick=4.0)
    document = json.loads(race.read_text())
    written(race, {**document, "engines_sha256": in_use_by_variant(in_use)})
    assert read_own_race(race, RaceRecord, in_use).model == "m"
    written(race, {**document, "engines_sha256": {QUICK: "0" * 64}})
    with pytest.raises(ArtifactError, match=r"cpu\.race\.json: measured with another engine"):
        read_own_race(race, RaceRecord, in_use)
    digests = {**in_use_by_variant(in_use), "cpu-tvm-fp32": "0" * 64}
    written(race, {**document, "engines_sha256": digests})
    with pytest.raises(ArtifactError, match="raced cpu-tvm-fp32, which is configured no more; del"):
        read_own_race(race, RaceRecord, in_use)
    other = race.parents[1] / "other" / race.name
    other.parent.mkdir()
    written(other, document)
    with pytest.raises(ArtifactError, match="the record of model m, not of other"):
        read_own_race(other, RaceRecord, in_use)


def test_a_family_of_other_engines_is_refused(tmp_path: Path) -> None:
    summarized(tmp_path)
    record = race_record(host=HOST, engines_sha256={f"m/{QUICK}": "0" * 64})
    path = tmp_path / "reports/m/cpu.family.json"
    FamilyRecord(**{**asdict(record), "variant": FAMILY}).write(path)
    inputs = inputs_of(tmp_path, write_run(tmp_path, QUICK), families=[path])
    settings = Settings(unavailable=[], baselines=BASELINES, budget_points=1.0)
    targets = {"json_target": tmp_path / "a.json", "csv_target": tmp_path / "a.csv"}
    with pytest.raises(ArtifactError, match=r"family\.json: measured with another engine"):
        summarize(inputs, settings, **targets)


def in_use_by_variant(in_use: Engines) -> dict[str, str]:
    return {variant: digest for (_, variant), digest in in_use.items()}


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    checkpoint, _ = write_model(tmp_path)
    write_manifest(checkpoint, **CHECKPOINT, model="m")
    require_model(checkpoint, "m")
    write_manifest(checkpoint, **CHECKPOINT, model="other")
    with pytest.raises(ArtifactError, match="the checkpoint of model other, not of m; delete"):
        require_model(checkpoint, "m")


def test_a_broken_record_is_named(tmp_path: Path) -> None:
    run = write_run(tmp_path, BASELINE)
    latency = run[1]
    latency.write_text(latency.read_text()[:-50])
    settings = Settings(unavailable=[], baselines=BASELINES, budget_points=1.0)
    targets = {"json_target": tmp_path / "summary.json", "csv_target": tmp_path / "summary.csv"}
    with pytest.raises(ArtifactError, match=rf"{latency.name}: its content is not what was"):
        summarize(inputs_of(tmp_path, run), settings, **targets)
    assert not (tmp_path / "summary.json").exists()
