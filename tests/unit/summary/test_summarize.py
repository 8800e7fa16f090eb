import json
from pathlib import Path
from typing import Any

import pandas
import pytest
from accuracy_records import accuracy_record
from artifact_files import rewrite, without_digests, written
from disturbed import facts
from gpu_states import state
from latency_records import latency_shape
from manifests import CHECKPOINT, ENGINE, SPLIT
from msgspec import to_builtins
from msgspec.structs import replace
from raced import SHAPE, decided_shape, race_record
from report_pages import summary_of
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import clear_folder, write_manifest
from tightrope.decide.bounds import Goal
from tightrope.decide.phrases import said
from tightrope.decide.result import FlippedExample, Result, Search, Shape, Trial
from tightrope.errors import ArtifactError
from tightrope.machine.host import fingerprint, named
from tightrope.records.family import FAMILY, FamilyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.race import RaceRecord
from tightrope.records.record import Record
from tightrope.studies.study import StudyRecord
from tightrope.studies.traffic import Offline, Rehearsal, Sent
from tightrope.summary.document import TRAINING, Summary, exit_with_failures, failures, read_summary
from tightrope.summary.models import evaluation_split
from tightrope.summary.results import not_planned_entry
from tightrope.summary.runs import (
    Host,
    Inputs,
    Machine,
    Settings,
    engines_in_use,
    hosts_of,
    read_own_race,
)
from tightrope.summary.summarize import summarize, table

Document = dict[str, Any]
HOST = {
    **{"cpu": "Some CPU", "isa": ["avx2"], "cores": 2, "memory_bytes": 1},
    **{"gpu": None, "driver": None, "python": "3.11.7"},
}
LARGE = Shape(batch=8, sequence=64)
OWN = [[0.004 + 0.0001 * (i % 3), 0.0041] for i in range(10)]
THEIRS = [[0.01 + 0.0001 * (i % 3), 0.0101] for i in range(10)]
BASELINE, QUICK, FAILED = "cpu-pytorch-fp32", "cpu-openvino-int8-nncf-64", "cpu-onnxruntime-fp32"
PLAIN, AUTO = "cpu-openvino-fp32", "cpu-onnxruntime-int8-auto-minmax-64"
MISSING = ("m", "cuda-pytorch-fp32", "no NVIDIA GPU")
BASELINES = {"m": {"cpu": BASELINE, "cuda": "cuda-pytorch-fp32"}}
EXAMPLES = "".join(
    json.dumps({"label": index % 2, "text": f"<script> {index}"}) + "\n" for index in range(1000)
)
OPTIONS = {
    **{"route": "onnx", "blobs": False, "static_programs": None},
    "buckets": {"batch": [1, 8], "sequence": [32, 64]},
}


def write_run(folder: Path, variant: str, loads: Document | None = None) -> tuple[Path, Path, Path]:
    """engine.json, latency.json and accuracy.json of one variant of model m."""
    engine = folder / "artifacts/m/engines" / variant / "engine.json"
    latency, accuracy = (
        folder / f"reports/m/{variant}.{kind}.json" for kind in ("latency", "accuracy")
    )
    failed = {"status": "failed", "reason": "no such operator"} if variant == FAILED else {}
    built = failed or {"status": "ok"}
    (clear_folder(engine) / "weights").write_bytes(b"x" * (50 if variant == QUICK else 200))
    own = {"variant": variant, "precision": variant.split("-")[2], "options": OPTIONS}
    write_manifest(engine, **{**ENGINE, **own, **built})
    library = variant.split("-")[1]
    identity = {"model": "m", "variant": variant, "host": HOST, "libraries": {library: "1.2"}}
    identity["engine_sha256"] = sha256(engine)
    alone = variant == BASELINE
    blocks = (THEIRS, None) if alone else (OWN, THEIRS)
    shape = latency_shape(*blocks, **(loads or facts(0, 10)))
    plan = {"pairs": len(OWN), "calls": None, "loads": 1}
    facts_of_the_engine = {"load_s": 0.3, "first_call_s": 0.02, "peak_rss_bytes": 10**9}
    shapes = [] if failed else [shape, replace(shape, batch=8)]
    work = {"threads": 2, "plan": plan, "processors": [0, 1], "shapes": shapes}
    LatencyRecord(**identity, **failed, **work, **facts_of_the_engine).write(latency)
    answers = {
        "predictions": [0, 1] * 499 + [0, int(alone)],
        "labels": [0, 1] * 500,
        "logits": [[0.5, 0.25]] * 999 + [[0.5, 0.25 + alone]],
    }
    answers = {"labels": None, "predictions": []} if failed else answers
    split = sha256(write_split(folder))
    accuracy_record(**{**identity, **failed, **answers, "data_sha256": split}).write(accuracy)
    return engine, latency, accuracy


def write_race(folder: Path, **milliseconds: float) -> Path:
    """The race of these at both shapes, by their milliseconds a call."""
    names = {"base": BASELINE, "quick": QUICK, "plain": PLAIN}
    seconds = {names[word]: 0.001 * one for word, one in milliseconds.items()}
    shape = decided_shape(seconds, pairs=[(QUICK, PLAIN)] if "plain" in milliseconds else [])
    path = folder / "reports/m/cpu.race.json"
    race_record([shape, replace(shape, batch=8)], host=HOST).write(path)
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
    name = f"../data/{texts.name}"
    files = {name: {"sha256": sha256(texts), "size_bytes": texts.stat().st_size}}
    rows = {"file": name, "rows": [0, 1000, 1], "samples": 1000, "files": files, "schema": 1}
    return written(folder / "artifacts/m/splits/evaluation.json", {**SPLIT, **rows})


def write_traffic(folder: Path, host: Document) -> Path:
    """traffic.json of the baseline of model m, one padding, offline alone."""
    path = folder / f"reports/m/{BASELINE}.traffic.json"
    offline = {"samples": 400, "samples_per_s": 80.0, "tokens": 30, "padded_tokens": 10}
    offline |= {"padding": "fixed", "valid": True, "foreign_cores": 0.0, "duration_s": 5.0}
    told = {"predictions": [0, 1], "margins": [1.0, 1.0], "samples_per_s": 80.0}
    known = {
        **{"model": "m", "variant": BASELINE, "threads": 2, "host": host, "study": "traffic"},
        **{"libraries": {"mlcommons-loadgen": "6.0.17"}, "processors": [0, 1]},
        "settings": {"scenarios": ["offline"], "batch": 4, "p99_bound_s": 0.1},
        "engine_sha256": sha256(write_run(folder, BASELINE)[0]),
        "calls": [
            Sent(samples=2, of=2, lengths=[20, 10], longest=20),
            Rehearsal(padding="fixed", short_s=0.1, long_s=0.2, **told),
            *(Offline(**offline, batches=100, round=one) for one in (1, 2, 3)),
        ],
    }
    StudyRecord(**known).write(path)
    return path


# of a trial, which left two operators in float
TRIAL = {
    **{"smoothquant": 0.8, "flips": 9, "verdict": "kept", "seconds": 3.5, "delta": -0.002},
    **{"delta_low": -0.009, "delta_high": 0.005},
}
SEARCH: Document = {
    **{"in_float": ["a"], "smoothquant": 0.8, "operators": 1, "samples": 1024},
    **{"seconds": 3.0, "budget_points": 1.0, "trials": []},
}
SENSITIVE = {"agreement": 1.0, "logit_error": 0.1, "kl": 0.02, "sqnr_db": 30.0}


def write_int8(folder: Path) -> dict[str, list[Path]]:
    """The search of int8-auto."""
    divergences = {"a": 0.0, "b": 0.02, "c": 0.01}
    operators = {name: {**SENSITIVE, "kl": kl} for name, kl in divergences.items()}
    sensitivity = {"samples": 128, "operators": operators}
    trial = {**TRIAL, "in_float": ["a", "b"], "gained": 3, "lost": 5}
    search = {**SEARCH, "sensitivity": sensitivity, "trials": [trial]}
    return {"searches": [written(folder / "artifacts/m/search/u8s8-minmax-64.json", search)]}


def inputs_of(folder: Path, *runs: tuple[Path, Path, Path], **records: Any) -> Inputs:
    """What a summary of these runs of model m is written from."""
    engines, latencies, accuracies = zip(*runs, strict=True)
    checkpoint, split = write_model(folder)
    model = {"checkpoints": [checkpoint], "splits": [split]}
    return Inputs(engines=engines, latencies=latencies, accuracies=accuracies, **model, **records)


def write(folder: Path, inputs: Inputs, **options: Any) -> None:
    """Write the summary of what was read, with the baselines of model m."""
    known = {"unavailable": [MISSING], "baselines": BASELINES, "budget_points": 1.0}
    targets = {"json_target": folder / "summary.json", "csv_target": folder / "summary.csv"}
    summarize(inputs, Settings(**{**known, **options}), **targets)


def summarized(
    folder: Path,
    variants: tuple[str, ...] = (BASELINE, QUICK, FAILED),
    race: dict[str, float] | None = None,
    loads: dict[str, Document] | None = None,
    records: Document | None = None,
    **options: Any,
) -> Summary:
    """The summary of these variants; `race` is that of `write_race`, by default QUICK alone.

    `loads` are `pairs` and `foreign_cores` of variants that other load disturbed.
    """
    runs = [write_run(folder, one, (loads or {}).get(one, facts(0, 10))) for one in variants]
    races = [write_race(folder, **(race or {"quick": 4.0}))]
    write(folder, inputs_of(folder, *runs, races=races, **(records or {})), **options)
    summary = read_summary(folder / "summary.json")
    assert to_builtins(summary) == document_of(folder), "a field has no type"
    return summary


GOAL = Goal("latency", shape=SHAPE, accuracy_points=0.01)
STATES = [state(), state(sm_clock_mhz=1410, throttled=["power cap", "thermal slowdown"])]
OTHER = {**HOST, "cpu": "Other CPU"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run")
    summarized(path)
    return path


def document_of(folder: Path) -> Document:
    return without_digests(json.loads((folder / "summary.json").read_text()))


@pytest.fixture
def summary(folder: Path) -> Summary:
    return read_summary(folder / "summary.json")


@pytest.fixture
def full(everything: Path) -> Summary:
    return read_summary(everything / "summary.json")


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with all that may be asked for."""
    path = tmp_path_factory.mktemp("everything")
    records = {"studies": (write_traffic(path, OTHER),), **write_int8(path)}
    variants, race = (BASELINE, QUICK, PLAIN, AUTO), {"quick": 4.0, "plain": 5.0}
    loads = {QUICK: {**facts(0, 10), "energy_j": [2.0] * 10, "gpu": STATES * 5}}
    options = {"goal": GOAL, "prices": {"*": 0.36}, "prepared": {"m": {BASELINE: [], QUICK: []}}}
    given = {"configuration": ["config/mine.yaml"], "overrides": ["calibration={samples: [256]}"]}
    summarized(path, variants, race, loads, records, **options, **given)
    return path


def by_variant(summary: Summary) -> dict[str, Result]:
    return {result.variant: result for result in summary.results}


def test_it_has_every_field_of_the_contract(summary: Summary) -> None:
    assert summary.schema == 7
    (host,) = summary.hosts.values()
    libraries = {"pytorch": "1.2", "openvino": "1.2", "onnxruntime": "1.2"}
    assert host == Host(**HOST, libraries=libraries)
    (model,) = summary.models.values()
    assert (model.chance, model.thumbnails) == (0.5, {})
    assert model.baselines == {"cpu": BASELINE}, "of devices that ran something"
    assert (summary.goal, summary.goals, summary.costs) == (None, [], [])
    assert summary.quantization == summary.studies["traffic"] == []
    assert [one.shape for one in summary.recommendations] == [SHAPE, LARGE]
    assert {one.variant for one in summary.recommendations} == {QUICK}
    rejected = {one.variant for one in summary.recommendations[0].rejected}
    assert rejected == {BASELINE, FAILED, "cuda-pytorch-fp32"}


def test_every_variant_is_in_it_with_what_is_known_of_it(summary: Summary) -> None:
    found = by_variant(summary)
    assert {name: (one.status, one.baseline) for name, one in found.items()} == {
        **{BASELINE: ("ok", BASELINE), QUICK: ("ok", BASELINE), FAILED: ("failed", BASELINE)},
        "cuda-pytorch-fp32": ("unavailable", None),
    }
    failed = found[FAILED]
    assert (failed.reason, failed.accuracy, failed.latency) == ("no such operator", None, [])
    missing, quick = found["cuda-pytorch-fp32"], found[QUICK]
    assert (missing.reason, missing.options) == ("no NVIDIA GPU", None)
    assert (quick.host, quick.options) == (fingerprint(HOST), OPTIONS)
    assert (quick.device, quick.engine, quick.precision) == ("cpu", "openvino", "int8")
    assert (quick.size_bytes, quick.build_s, quick.load_s) == (50, 1.5, 0.3)
    assert quick.peak_rss_bytes == 10**9
    accuracy = quick.accuracy
    assert (accuracy.top1, accuracy.flips) == (0.999, 1)
    assert (accuracy.delta, accuracy.verdict) == (-0.001, "kept")
    # the texts of changed answers come from the evaluation split
    changed = FlippedExample(999, "<script> 999", "good", "good", "bad", 1.0, 1.0)
    assert accuracy.flipped == [changed]
    assert (found[BASELINE].accuracy.delta, found[BASELINE].accuracy.flipped) == (0, [])


def test_one_that_could_only_be_timed_has_failed_with_the_reason_of_its_accuracy(tmp_path):
    run = write_run(tmp_path, BASELINE)
    digests = {"engine_sha256": sha256(run[0]), "data_sha256": sha256(write_split(tmp_path))}
    lost = {"status": "failed", "reason": "killed by SIGKILL"}
    accuracy_record(variant=BASELINE, host=HOST, **digests, **lost).write(run[2])
    write(tmp_path, inputs_of(tmp_path, run))
    found = by_variant(read_summary(tmp_path / "summary.json"))[BASELINE]
    assert (found.status, found.reason) == ("failed", "killed by SIGKILL")
    assert (found.accuracy, len(found.latency)) == (None, 2)


def test_another_baseline_of_the_model_is_what_its_variants_are_judged_against(tmp_path):
    baselines = {"m": {"cpu": QUICK, "cuda": "cuda-onnxruntime-fp32"}}
    summary = summarized(tmp_path, baselines=baselines)
    found = by_variant(summary)
    assert summary.models["m"].baselines == {"cpu": QUICK}
    assert {found[name].baseline for name in (BASELINE, QUICK, FAILED)} == {QUICK}
    own, other = found[QUICK].accuracy, found[BASELINE].accuracy
    assert (own.delta, own.flips, other.delta, other.flips) == (0, 0, 0.001, 1)


def test_a_race_with_its_engine_in_float_is_what_counts(full: Summary) -> None:
    assert [one.shape for one in full.quantization] == [SHAPE, LARGE]
    for entry in full.quantization:
        assert (entry.variant, entry.unquantized) == (QUICK, PLAIN)
        assert (entry.host, entry.verdict) == (fingerprint(HOST), "quantize")
        assert entry.speedup.ratio == pytest.approx(1.25, rel=0.01)
    first, second = full.races
    assert (first.shape, second.shape) == (SHAPE, LARGE)
    assert (first.variant, first.status, first.out) == (QUICK, "decided", {PLAIN: QUICK})
    rows = {name: one.latency[0] for name, one in by_variant(full).items() if one.latency}
    assert {name for name, row in rows.items() if row.raced} == {QUICK, PLAIN}
    # measured beside the baseline both took the same time
    times = rows[PLAIN].paired_s / rows[QUICK].paired_s
    assert times == pytest.approx(1.25, rel=0.01)
    assert rows[BASELINE].paired_s == pytest.approx(rows[BASELINE].p50_s, rel=0.01)


def test_other_load_leaves_no_number_and_makes_the_choice_provisional(tmp_path: Path) -> None:
    run = {"variants": (BASELINE, QUICK, PLAIN), "loads": {PLAIN: facts(8, 2)}}
    summary = summarized(tmp_path, **run)
    row = by_variant(summary)[PLAIN].latency[0]
    assert (row.speedup.ratio, row.paired_s, row.samples) == (None, None, 0)
    assert row.disturbed.startswith("only 2 of 10 pairs of blocks were undisturbed")
    for one in summary.recommendations:
        assert (one.variant, one.provisional, one.disturbed) == (QUICK, True, [PLAIN])
    accepted = summarized(tmp_path, **run, accept_disturbed=True)
    row = by_variant(accepted)[PLAIN].latency[0]
    assert row.provisional is True
    assert row.speedup.ratio > 1 and row.paired_s > 0


def test_a_goal_decides_the_recommendation_at_its_shape_alone(full: Summary) -> None:
    assert full.goal == GOAL
    (decision,) = full.goals
    # the others changed one answer of 1000: only the baseline has surely lost nothing
    assert (decision.variant, decision.shape) == (BASELINE, SHAPE)
    (bound,) = decision.bounds
    assert (bound.variant, bound.more) == (QUICK, pytest.approx(1.5, rel=0.05))
    here, other = full.recommendations
    assert (here.variant, here.why.code) == (BASELINE, "goal")
    assert other.variant == QUICK
    assert said(other.why) == "the fastest of the 4 variants that keep the accuracy"


def test_each_row_has_its_costs_and_without_a_price_no_column_is_about_money(full, tmp_path):
    priced = {(one.variant, one.shape.batch): one for one in full.costs}
    measured = [(one.variant, row.shape.batch) for one in full.results for row in one.latency]
    assert list(priced) == measured
    # an hour for 0.36 is 0.0001 per second
    seconds = by_variant(full)[QUICK].latency[0].paired_s
    assert priced[QUICK, 1].cost_per_million == pytest.approx(1e6 * seconds * 0.0001)
    assert priced[QUICK, 1].break_even_inferences > 0
    goal = Goal("latency")
    summarized(tmp_path, (BASELINE, QUICK), goal=goal, prepared={"m": {QUICK: []}})
    header = set(pandas.read_csv(tmp_path / "summary.csv"))
    assert {"cost.saved_s", "cost.break_even_inferences"} <= header
    assert not {"cost.price_per_hour", "cost.cost_per_million"} & header


NESTED = ("executed", "options", "search")
ALREADY = ("model", "variant", "host", "shape", "build_s")


def rows_of(document: Document) -> list[Document]:
    """What a row of the table is about: a result, one of its latencies and their cost."""
    costs = {(one["variant"], one["shape"]["batch"]): one for one in document["costs"]}
    found = []
    for result in document["results"]:
        own = {name: value for name, value in result.items() if name not in NESTED}
        for row in result["latency"] or [{"shape": {}}]:
            sizes = row.pop("shape")
            cost = costs.get((result["variant"], sizes.get("batch")), {})
            told = {name: value for name, value in cost.items() if name not in ALREADY}
            found.append({**own, "latency": {**sizes, **row}, "cost": told})
    return found


@pytest.mark.parametrize("run", ["folder", "everything"])
def test_the_csv_holds_the_same_values(run: str, request: pytest.FixtureRequest) -> None:
    """Of costs, energy and the GPU only where there are some."""
    path = request.getfixturevalue(run)
    frame = pandas.read_csv(path / "summary.csv", dtype=str, keep_default_na=False)
    expected = pandas.json_normalize(rows_of(document_of(path)))
    names = ("size_bytes", "latency.batch", "accuracy.top1", "latency.speedup.ratio")
    places = [list(frame).index(name) for name in names]
    assert places == sorted(places), "a row of the table begins with the result"
    lost = set(expected) - set(frame)
    assert expected[[*lost - {"accuracy.flipped"}]].isna().all(axis=None)
    assert "accuracy.flipped" in lost and "latency.gpu" not in frame
    for name in ("size_bytes", "latency.batch", "latency.samples", "accuracy.samples"):
        assert all(text.isdigit() or not text for text in frame[name]), name
    for name in frame:
        for text, value in zip(frame[name], expected[name], strict=True):
            if isinstance(value, list):
                assert text == "; ".join(value), name
            elif pandas.isna(value):
                assert text == "", name
            elif isinstance(value, bool | str):
                assert text == str(value), name
            else:
                assert float(text) == value, name


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ([0, 0.5, None], ["0.0", "0.5", ""]),
        ([2.0, 3, None], ["2", "3", ""]),
        ([None, 7], ["", "7"]),
        ([1e-07, 1e22, 123456789.125], ["1e-07", "1e+22", "123456789.125"]),
        ([True, 2**40, None], ["True", "1099511627776", ""]),
        (['a "quoted", ä', "b\nc"], ['"a ""quoted"", ä"', '"b\nc"']),
    ],
)
def test_numbers_among_fractions_are_fractions_unless_all_are_whole(values, cells):
    rows = [{"first": "x", "second": value} for value in values]
    assert table(rows) == "first,second\n" + "".join(f"x,{cell}\n" for cell in cells)


def test_what_was_measured_under_traffic_is_in_it_with_its_host(full: Summary) -> None:
    assert full.configuration == ["config/mine.yaml"]
    assert full.overrides == ["calibration={samples: [256]}"]
    (entry,) = full.studies["traffic"]
    assert (entry.model, entry.variant, entry.status) == ("m", BASELINE, "ok")
    (row,) = entry.rows
    assert (row["padding"], row["samples_per_s"], row["padding_share"]) == ("fixed", 80.0, 0.25)
    assert entry.host == fingerprint(OTHER) != fingerprint(HOST)
    assert set(full.hosts) == {fingerprint(HOST), fingerprint(OTHER)}
    assert full.hosts[fingerprint(OTHER)].libraries == {"mlcommons-loadgen": "6.0.17"}


def found_hosts(*hosts: Document, **last: Any) -> dict[str, Host]:
    """The hosts of records of these, the last of which has more fields."""
    records = [Record(model="m", variant="v", host=one, libraries={}) for one in hosts]
    records[-1] = replace(records[-1], **last)
    return hosts_of(map(Machine.of, records))


def test_cards_of_one_kind_are_one_host_with_their_uuids_and_hosts_with_names_are_apart() -> None:
    cards = [{**HOST, "gpu": "NVIDIA L4", "gpu_uuid": uuid} for uuid in ("GPU-b", "GPU-a", "GPU-b")]
    (host,) = found_hosts(*cards).values()
    assert (host.gpu, host.gpu_uuids) == ("NVIDIA L4", ["GPU-a", "GPU-b"])
    # what ended a job on the third may have been written elsewhere
    alike = [named(HOST, name) for name in ("genoa", "rome", "h100")]
    found = found_hosts(*alike, status="failed")
    assert {key: one.name for key, one in found.items()} == {"genoa": "genoa", "rome": "rome"}
    reason = "not supported by this CPU"
    entry = not_planned_entry("m", "cpu@rome-openvino-bf16", reason, "unavailable")
    assert (entry.host, entry.device) == ("rome", "cpu")


def test_what_is_known_of_int8_stands_with_its_result_and_its_model(full: Summary) -> None:
    results = by_variant(full)
    # of trials how many are in float
    trial = Trial(**TRIAL, in_float=2)
    assert results[AUTO].search == Search(**{**SEARCH, "trials": [trial]})
    sensitive = full.models["m"].sensitivity["u8s8-minmax-64"]
    assert sensitive.samples == 128
    # operators come in the order of their divergence
    told = [(one.operator, one.kl, one.sqnr_db) for one in sensitive.operators]
    assert told == [("b", 0.02, 30.0), ("c", 0.01, 30.0), ("a", 0.0, 30.0)]
    for name in (BASELINE, MISSING[1]):
        assert results[name].search is None


ANOTHER = "measured with another engine than the one in use"


@pytest.mark.parametrize(
    ("kind", "field", "value", "words"),
    [
        ("latency", "model", "other", "the record of .* of model other, not of .* of m"),
        ("latency", "variant", "cpu-tvm-fp32", "the record of cpu-tvm-fp32 of model m, not of"),
        ("latency", "engine_sha256", "0" * 64, ANOTHER),
        ("latency", "engine_sha256", None, ANOTHER),
        ("accuracy", "model", "other", "the record of .* of model other, not of .* of m"),
        ("accuracy", "engine_sha256", "0" * 64, ANOTHER),
        ("accuracy", "data_sha256", "0" * 64, "predictions on other data than .*evaluation.json"),
        ("checkpoint", "model", "other", "the checkpoint of model other, not of m"),
    ],
)
def test_a_record_of_another_model_variant_engine_or_split_is_refused(
    tmp_path: Path, kind: str, field: str, value: str | None, words: str
) -> None:
    engine, latency, accuracy = write_run(tmp_path, BASELINE)
    inputs = inputs_of(tmp_path, (engine, latency, accuracy))
    paths = {"latency": latency, "accuracy": accuracy, "checkpoint": inputs.checkpoints[0]}
    rewrite(Path(paths[kind]), **{field: value})
    with pytest.raises(ArtifactError, match=rf"{kind}\.json: {words}.*; delete .*and run again"):
        write(tmp_path, inputs)
    assert not (tmp_path / "summary.json").exists()


def test_a_broken_record_and_a_changed_text_are_named(tmp_path: Path) -> None:
    run = write_run(tmp_path, BASELINE)
    inputs, latency = inputs_of(tmp_path, run), run[1]
    latency.write_text(latency.read_text()[:-50])
    with pytest.raises(ArtifactError, match=rf"{latency.name}: its content is not what was"):
        write(tmp_path, inputs)
    file = tmp_path / "artifacts/m/data/evaluation.jsonl"
    file.write_text(EXAMPLES.replace("script", "edited"))
    with pytest.raises(ArtifactError, match=r"evaluation\.jsonl: its content is not the one"):
        evaluation_split(tmp_path / "artifacts/m/splits/evaluation.json")
    # inputs without a text have none to tell
    fields = {"source": "random", "labels": None, "rows": [0, 2, 1], "samples": 2}
    write_manifest(tmp_path / "evaluation.json", **{**SPLIT, **fields})
    found = evaluation_split(tmp_path / "evaluation.json")
    assert (found.texts, found.labels) == ([None, None], None)


def test_a_race_or_a_family_of_other_engines_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path, QUICK)
    in_use = engines_in_use([run[0]])
    digests = {variant: digest for (_, variant), digest in in_use.items()}
    race = write_race(tmp_path, quick=4.0)
    rewrite(race, engines_sha256=digests)
    assert read_own_race(race, RaceRecord, in_use).model == "m"
    absent = "raced cpu-tvm-fp32, which is configured no more; del"
    for others, words in (
        ({QUICK: "0" * 64}, r"cpu\.race\.json: measured with another engine"),
        ({**digests, "cpu-tvm-fp32": "0" * 64}, absent),
    ):
        rewrite(race, engines_sha256=others)
        with pytest.raises(ArtifactError, match=words):
            read_own_race(race, RaceRecord, in_use)
    other = written(race.parents[1] / "other" / race.name, json.loads(race.read_text()))
    with pytest.raises(ArtifactError, match="the record of model m, not of other"):
        read_own_race(other, RaceRecord, in_use)
    record = race_record(host=HOST, engines_sha256={f"m/{QUICK}": "0" * 64})
    family = tmp_path / "reports/m/cpu.family.json"
    FamilyRecord(**{**to_builtins(record), "variant": FAMILY}).write(family)
    baseline = write_run(tmp_path, BASELINE)
    with pytest.raises(ArtifactError, match=r"family\.json: measured with another engine"):
        write(tmp_path, inputs_of(tmp_path, baseline, run, families=[family]))


def test_only_failed_results_and_trainings_are_failures(tmp_path: Path) -> None:
    """That a strict run ends with an error and their reasons, the tests of whole runs show."""
    statuses = {"a": "ok", "b": "failed", "c": "unavailable"}
    results = [{"model": "m", "variant": name, "status": one} for name, one in statuses.items()]
    trained = [{"model": "m", "status": one, "reason": "why"} for one in ("failed", "ok")]
    found = failures(summary_of({"results": results, "training": trained}))
    assert found == {"m/b": None, f"m/{TRAINING}": "why"}
    exit_with_failures(tmp_path / "none.json")  # which ends no process
