"""The files that jobs read: sources of engines, graphs that are drawn, and what is timed before."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from planned_jobs import job_of
from tightrope.plan import job_inputs
from tightrope.plan.inputs import graph_files, training_examples
from tightrope.variants import parse

FOLDER = "artifacts/m"
CHECKPOINT, ONNX = f"{FOLDER}/checkpoint/checkpoint.json", f"{FOLDER}/model.simplified.onnx"
CONFIG: dict[str, Any] = {"calibration": {"reduce_range": False}, "openvino": {"route": "onnx"}}


def test_an_engine_that_is_given_its_precision_has_one_input() -> None:
    for variant, source in (
        ("cpu-pytorch-int8-dynamic", CHECKPOINT),
        ("cpu-onnxruntime-int8-dynamic", ONNX),
        ("cuda-tensorrt-given", f"{FOLDER}/model.onnx"),
        ("cpu-onnxruntime-int8-minmax-64", f"{FOLDER}/quantized/u8s8-minmax-64.onnx"),
        ("cpu-onnxruntime-int8-auto-minmax-64", f"{FOLDER}/quantized/u8s8-minmax-64-auto.onnx"),
        ("cuda-tensorrt-int8-fp16-minmax-64", f"{FOLDER}/quantized/s8s8-minmax-64.onnx"),
        ("cuda-tensorrt-fp8-minmax-8", f"{FOLDER}/quantized/e4m3-minmax-8.onnx"),
        ("cpu-openvino-int8-bf16-nncf-8", f"{FOLDER}/engines/cpu-openvino-int8-nncf-8/engine.json"),
    ):
        assert job_inputs.engine_inputs(CONFIG, "m", parse(variant)) == {"source": source}


@pytest.mark.parametrize(
    ("variant", "route", "source"),
    [
        ("cpu-openvino-int8-nncf-64", "onnx", ONNX),
        ("cpu-openvino-int8-nncf-64", "pytorch", CHECKPOINT),
        ("cpu-inductor-int8-minmax-64", "onnx", CHECKPOINT),
    ],
)
def test_an_engine_that_quantizes_itself_gets_the_samples_as_well(variant, route, source) -> None:
    config, own = {**CONFIG, "openvino": {"route": route}}, parse(variant)
    assert job_inputs.engine_inputs(config, "m", own) == {
        "source": source,
        "onnx": ONNX,
        "calibration": f"{FOLDER}/calibration/{own.calibration}.json",
        "data": f"{FOLDER}/splits/calibration.json",
        "checkpoint": CHECKPOINT,
    }
    plain = job_inputs.engine_inputs(config, "m", parse("cpu-openvino-fp32"))
    assert plain == {"source": CHECKPOINT if route == "pytorch" else ONNX}


def test_a_checkpoint_that_is_not_trained_depends_on_no_split() -> None:
    for checkpoint, recipe, read in (
        ("path:mine", {"epochs": 1}, "splits/train.json"),
        ("scratch:bert", None, "splits/train.json"),
        ("path:mine", None, "data/data.json"),
        ("onnx:mine.onnx", None, "data/data.json"),
    ):
        config = {"models": {"m": {"checkpoint": checkpoint, "train": recipe}}}
        assert training_examples(job_of(config, model="m")) == {"data": f"{FOLDER}/{read}"}


PLAIN = [f"{FOLDER}/calibration/minmax-64.tsv", f"{FOLDER}/quantized/u8s8-minmax-64.tsv"]


def test_each_file_before_the_engine_is_named_but_the_search() -> None:
    for variant, files in (
        ("cpu-onnxruntime-fp32", []),
        ("cpu-onnxruntime-int8-minmax-64", PLAIN),
        (
            "cpu-onnxruntime-int8-auto-minmax-64",
            [*PLAIN, f"{FOLDER}/quantized/u8s8-minmax-64-auto.tsv"],
        ),
        ("cpu-openvino-int8-nncf-64", [f"{FOLDER}/calibration/nncf-64.tsv"]),
    ):
        jobs = [("m", parse("cpu-onnxruntime-int8-minmax-64")), ("m", parse(variant))]
        all_files = job_inputs.prepared_files(CONFIG, jobs)
        assert len(all_files) == len({*all_files})
        assert [
            all_files[place] for place in job_inputs.prepared(CONFIG, jobs)["m"][variant]
        ] == files


ALL = ["exported", "simplified", "quantized"]
AUTO = [f"cpu-onnxruntime-int8-auto-{method}-8" for method in ("minmax", "entropy")]
ON_GPU = [f"cuda-tensorrt-{precision}-minmax-8" for precision in ("int8-fp16", "fp8")]
REPAIRED = ("cpu-onnxruntime-int8-minmax-8-smooth", *AUTO, *ON_GPU)
GIVEN = ("cpu-onnxruntime-fp32", "cpu-onnxruntime-given")
COUNTS = [f"cpu-onnxruntime-int8-{one}-{n}" for one in ("minmax", "entropy") for n in (8, 16)]


def test_which_graphs_of_a_model_are_drawn() -> None:
    for names, graphs, drawn in (
        # no file is made for a picture
        (("cpu-pytorch-fp32", "cpu-compile-bf16"), ALL, []),
        # calibrations that differ in numbers only are drawn once
        (COUNTS, ALL, ["exported", "simplified", "u8s8-minmax-8"]),
        # a repair, another scheme and each search have pictures of their own
        (
            REPAIRED,
            ["quantized"],
            [
                *("u8s8-minmax-8-smooth", "u8s8-minmax-8-auto", "u8s8-entropy-8-auto"),
                *("s8s8-minmax-8", "e4m3-minmax-8"),
            ],
        ),
        # of a file that is quantized already the file is the quantized one
        (GIVEN, ["quantized"], ["exported"]),
        (GIVEN, ["simplified"], ["simplified"]),
        (GIVEN, [], []),
    ):
        jobs = [("a", parse(name)) for name in names]
        found = job_inputs.graphs_of({**CONFIG, "graphs": graphs}, jobs)
        assert found == [("a", graph) for graph in drawn]
        assert all(re.fullmatch(job_inputs.GRAPH, graph) for graph in drawn)
        assert not any(
            re.fullmatch(job_inputs.GRAPH, name) for name in ("optimized", "u8s8", *names)
        )


def test_a_picture_has_costs_where_its_operators_are_timed() -> None:
    for model, graph, file, has_costs in (
        ("a", "exported", "model.onnx", False),
        ("a", "simplified", "model.simplified.onnx", True),
        ("a", "u8s8-minmax-8-auto", "quantized/u8s8-minmax-8-auto.onnx", True),
        ("a", "u8s8-entropy-16-smooth", "quantized/u8s8-entropy-16-smooth.onnx", True),
        ("a", "s8s8-minmax-8", "quantized/s8s8-minmax-8.onnx", False),
        ("b", "simplified", "model.simplified.onnx", False),
    ):
        inputs = {"onnx": f"artifacts/{model}/{file}"}
        inputs |= {"costs": "artifacts/a/costs/u8s8-minmax-8.json"} if has_costs else {}
        plan = SimpleNamespace(searches=[("a", "u8s8", "minmax-8")])
        job = job_of({"models": {}}, plan, model=model, graph=graph)
        assert graph_files(job) == inputs
