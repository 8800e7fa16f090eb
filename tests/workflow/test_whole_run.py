"""One run with everything that can be asked for: what each step wrote, and what the report says."""

import html
from collections import Counter
from typing import Any

import pytest
from tightrope.studies.table import STUDIES
from tightrope.summary.document import Summary, read_summary
from tightrope.summary.runs import job_seconds
from tiny_project import CONFIG, GIVEN, INT8, LEARNT, MODEL, RELU, SMALL, Project

MODELS = (MODEL, SMALL, RELU, GIVEN)
BASELINE = "cpu-pytorch-fp32"
AS_GIVEN = ("cpu-onnxruntime-given", "cpu-openvino-given")
PLAIN = (BASELINE, "cpu-onnxruntime-int8-auto-minmax-8", INT8)


@pytest.fixture(scope="module")
def summary(whole: Project) -> Summary:
    return read_summary(whole / "reports/summary.json")


@pytest.fixture(scope="module")
def page(whole: Project) -> str:
    return (whole / "reports/summary.html").read_text()


def test_everything_was_measured_and_nothing_is_left_to_do(whole: Project, summary: Any) -> None:
    variants = {model: set() for model in MODELS}
    for result in summary.results:
        assert (result.status, result.reason) == ("ok", None), result.variant
        assert [row.shape.sizes for row in result.latency] == CONFIG["shapes"]
        variants[result.model].add(result.variant)
    assert variants[MODEL] == variants[RELU] == set(PLAIN)
    assert variants[SMALL] == {one.replace("minmax", "qat").replace("nncf", "qat") for one in PLAIN}
    assert variants[GIVEN] == {"cpu-onnxruntime-fp32", *AS_GIVEN}
    assert whole.plan() == set()


def test_a_padded_shape_stands_beside_the_full_one(whole: Project, summary: Any, page: str) -> None:
    for entries in (summary.recommendations, summary.races):
        assert [one.shape.sizes for one in entries if one.model == MODEL] == CONFIG["shapes"]
    padded = next(one for one in summary.results if one.model == MODEL).latency[2]
    assert padded.throughput_per_s == pytest.approx(2 / padded.paired_s)
    text = html.unescape(page).replace("\xa0", " ")
    assert "batch 2 \N{MIDDLE DOT} 8 tokens" in text
    assert "batch 2 \N{MIDDLE DOT} 5 of 8 tokens" in text
    assert "latency.tokens" in (whole / "reports/summary.csv").read_text().splitlines()[0]


def test_a_quantized_file_runs_as_it_is_and_is_compared_with_its_float_model(whole, summary, page):
    results = {one.variant: one for one in summary.results if one.model == GIVEN}
    for name in AS_GIVEN:
        assert (results[name].precision, results[name].calibration) == ("given", None)
        assert results[name].status == "ok"
        counts = results[name].executed.values()
        assert sum(one.get("int8", 0) for one in counts) > 0
        engine = whole.read(f"artifacts/{GIVEN}/engines/{name}/engine.json")
        assert list(engine["sources"]) == ["model.onnx"]
    judged = {one.variant: one.unquantized for one in summary.quantization}
    assert judged[AS_GIVEN[0]] == "cpu-onnxruntime-fp32"
    log = whole.log(f"simplify_onnx/{GIVEN}")
    assert "a quantized file: its logits differ from its float model's by" in log
    assert "in the file as given" in page
    assert not (whole / f"artifacts/{GIVEN}/calibration").exists()


def test_each_section_of_the_page_is_there(page: str) -> None:
    sections = ("deploy", "trade-off", "answers", "int8", "inside", "traffic")
    sections += ("throughput", "profile", "causes", "idleness", "activations", "family")
    sections += ("training", "costs", "results", "not-run", "reading")
    assert [one for one in sections if f'<section id="{one}"' not in page] == []
    assert "Everything that was asked for ran." in page


def test_traffic_has_the_gain_of_each_padding(summary: Summary) -> None:
    (entry,) = summary.studies["traffic"]
    fixed, longest, bucketed = entry.rows
    assert fixed["gain"]["value"] == fixed["padding_gain"] == 1
    for row in (longest, bucketed):
        assert row["gain"]["low"] < row["gain"]["value"] < row["gain"]["high"]


def test_throughput_has_each_division_of_the_cores_at_each_batch(whole: Project) -> None:
    found = STUDIES["throughput"].read(whole / f"reports/{SMALL}/{LEARNT}.throughput.json")
    assert (found.status, found.reason, found.shape) == ("ok", None, {"sequence": 8})
    cores = len(found.processors)
    counts = [one for one in range(1, cores + 1) if cores % one == 0]
    places = {(one.instances, one.threads, one.batch) for one in found.calls}
    assert places == {(one, cores // one, batch) for one in counts for batch in (1, 4)}


def test_idleness_has_the_calls_after_each_pause(whole: Project, summary: Summary) -> None:
    found = STUDIES["idleness"].read(whole / f"reports/{SMALL}/{LEARNT}.idleness.json")
    assert found.shape == {"batch": 1, "sequence": 8}
    assert Counter(call.pause_s for call in found.calls) == {0.01: 30, 0.05: 30}
    assert all(call.paused_s >= call.pause_s for call in found.calls)
    (entry,) = summary.studies["idleness"]
    assert [row["pause_s"] for row in entry.rows] == [0.01, 0.05]


def test_a_profile_says_where_the_time_of_each_shape_goes(whole: Project) -> None:
    for model, variant in ((SMALL, LEARNT), (MODEL, INT8)):
        found = whole.read(f"reports/{model}/{variant}.profile.json")
        assert (found["status"], found["unprofiled"]) == ("ok", None)
        for shape in found["shapes"]:
            assert sum(shape["shares"].values()) == pytest.approx(1.0)
            assert {one["group"] for one in shape["operators"]} <= set(shape["groups"])
            assert shape["prepare_s"] > shape["finish_s"] > 0
            assert shape["work"]["groups"]["products"] <= shape["work"]["operations"]
    small, large = (one["groups"]["products"]["operations"] for one in found["shapes"])
    assert small < large
    peaks = whole.read("artifacts/machine/cpu.peaks.json")
    # bf16 where this CPU has products in it
    assert set(peaks["peaks"]["operations_per_s"]) - {"bf16"} == {"fp32", "int8"}
    assert peaks["host"] == found["host"]


def test_causes_are_removed_and_both_engines_timed(summary: Summary) -> None:
    found = [one for entry in summary.causes for one in entry.causes]
    padded = [one for one in found if "padding" in one.cause]
    # two texts in a bucket of four
    assert padded and {(one.shape.batch, one.shape.sequence) for one in padded} == {(2, 8)}
    assert all(one.saved is not None or one.disturbed for one in padded)


def test_training_is_measured_by_seed_and_epoch(whole: Project, summary: Summary) -> None:
    found = whole.read(f"reports/{MODEL}/training.json")
    assert (found["status"], [run["seed"] for run in found["runs"]]) == ("ok", [0, 1])
    for run in found["runs"]:
        assert (run["samples"], run["held_out_samples"], len(run["epochs"])) == (108, 12, 2)
        assert all(one["samples"] == 108 and one["seconds"] > 0 for one in run["epochs"])
    losses = [[epoch["loss"] for epoch in run["epochs"]] for run in found["runs"]]
    assert losses[0] != losses[1]
    assert {entry.model for entry in summary.training} == {MODEL, RELU}


def test_models_that_differ_in_their_activation_are_timed_in_pairs(whole, summary) -> None:
    (entry,) = summary.activations
    assert (entry.model, entry.reference) == (RELU, MODEL)
    assert {row.variant for row in entry.rows} == set(PLAIN)
    assert [summary.models[name].activation for name in (MODEL, RELU)] == ["gelu", "relu"]
    shapes = whole.read(f"reports/{RELU}/{BASELINE}.activation.json")["shapes"]
    assert all(len(one["blocks_s"]) == len(one["baseline_blocks_s"]) for one in shapes)


def test_the_child_is_as_small_as_was_asked_and_learnt_from_its_parent(whole: Project) -> None:
    checkpoint = "artifacts/{}/checkpoint/checkpoint.json"
    child, parent = (whole.read(checkpoint.format(one)) for one in (SMALL, MODEL))
    assert (child["source"], child["labels"]) == (f"model:{MODEL}", parent["labels"])
    assert child["parameters"] == child["prune"]["target"]["reached"]["parameters"] <= 20_000
    assert child["distill"]["temperature"] == 2.0
    assert (whole / f"artifacts/{MODEL}/teacher").is_dir()


def test_the_ranges_that_the_child_learnt_are_those_of_its_files(whole: Project) -> None:
    folder = f"artifacts/{SMALL}"
    learnt = whole.read(f"{folder}/checkpoint/checkpoint.json")["qat"]["ranges"]
    cache = whole.read(f"{folder}/calibration/qat-8.json")
    assert cache["method"] == "qat"
    assert all(pair in cache["ranges"].values() for pair in learnt.values())
    assert not list((whole / folder).glob("calibration/minmax*"))


def test_the_child_and_its_parent_share_the_rounds_of_their_race(summary: Summary) -> None:
    (found,) = summary.families
    assert (found.root, found.status, found.reason) == (MODEL, "ok", None)
    members = [(one.model, one.parent) for one in found.members]
    assert members == [(MODEL, None), (SMALL, MODEL)]
    for shape in found.shapes:
        (child,) = [one for one in shape.engines if one.model == SMALL]
        against = child.against["root_baseline"]
        assert (against.model, against.variant) == (MODEL, BASELINE)


@pytest.mark.parametrize("path", ["calibration/minmax-8.tsv", "quantized/u8s8-minmax-8-auto.tsv"])
def test_each_job_before_a_build_leaves_its_seconds(whole: Project, path: str) -> None:
    assert (job_seconds(str(whole / f"artifacts/{MODEL}/{path}")) or 0) > 0


def test_the_summary_counts_the_texts_that_were_cut(summary: Summary) -> None:
    model = summary.models[MODEL]
    assert set(model.truncation) == {"evaluation", "calibration", "train"}
    assert model.truncation["train"].texts == model.data["train_samples"]
