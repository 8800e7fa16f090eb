"""A model that comes as an ONNX file with Q/DQ: it runs as it is, and nothing is calibrated."""

import json
import shutil
from typing import Any

import pytest
from tightrope.summary.document import read_summary
from tiny_project import CONFIG, MODEL, Project, drawn

FILE = "own/quantized.onnx"
GIVEN = ("cpu-onnxruntime-given", "cpu-openvino-given")
FLOAT = ("cpu-onnxruntime-fp32", "cpu-openvino-fp32")
ENGINES = {"onnxruntime": ["int8", "int8-dynamic"], "openvino": ["fp32", "int8"]}
MODELS: dict[str, Any] = {
    MODEL: {
        **CONFIG["models"][MODEL],
        **{"checkpoint": f"onnx:{FILE}", "quantized": True, "train": None},
    }
}


@pytest.fixture(scope="module")
def quantized(
    fresh: Project, finished_onnx: Project, tmp_path_factory: pytest.TempPathFactory
) -> Project:
    """A project before any run whose model is the quantized file that another made."""
    project = Project(fresh.copy(tmp_path_factory.mktemp("given") / "project").folder, MODELS)
    (project / FILE).parent.mkdir()
    folder = finished_onnx / f"artifacts/{MODEL}"
    shutil.copy2(folder / "quantized/u8s8-minmax-8.onnx", project / FILE)
    shutil.copy2(folder / "checkpoint/tokenizer.json", (project / FILE).parent)
    project.configure(engines=ENGINES)
    return project


def test_each_engine_has_one_variant_of_the_file_and_nothing_is_calibrated(
    quantized: Project,
) -> None:
    planned = quantized.plan()
    builds = {f"build_{name.split('-')[1]}/{MODEL}-cpu-{name.split('-')[2]}" for name in GIVEN}
    assert builds | {f"audit_variant/{MODEL}-{name}" for name in GIVEN} <= planned
    assert {job for job in planned if "given" in job} >= builds
    assert not [job for job in planned if job.startswith(("calibrate", "quantize", "search"))]
    assert not [job for job in planned if "int8" in job]
    assert drawn("exported", "simplified") <= planned  # the file itself, and its float model


def test_what_the_configuration_says_of_the_file_must_be_so(
    quantized: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = quantized.copy(tmp_path_factory.mktemp("said") / "project")
    project.configure(models={MODEL: {**MODELS[MODEL], "quantized": False}}, engines=ENGINES)
    done = project.snakemake("--", f"artifacts/{MODEL}/source/checkpoint.json")
    assert done.returncode != 0
    assert f"onnx:{FILE}: is quantized already" in done.stdout
    project.configure(models={MODEL: MODELS[MODEL]}, engines=ENGINES)
    assert project.run("--", f"artifacts/{MODEL}/source/checkpoint.json") == {
        f"prepare_checkpoint/{MODEL}"
    }


def test_a_whole_run_compares_the_file_with_its_float_model(
    quantized: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = quantized.copy(tmp_path_factory.mktemp("run") / "project")
    project.run()
    summary = read_summary(project / "reports/summary.json")
    results = {one["variant"]: one for one in summary["results"]}
    assert results.keys() == {*GIVEN, *FLOAT}
    assert {one["status"] for one in results.values()} == {"ok"}
    for name in GIVEN:
        assert (results[name]["precision"], results[name]["calibration"]) == ("given", None)
        assert results[name]["audit"]["status"] == "ok"
        counts = results[name]["executed"].values()
        assert sum(one.get("int8", 0) for one in counts) > 0
        engine = json.loads((project / f"artifacts/{MODEL}/engines/{name}/engine.json").read_text())
        assert list(engine["sources"]) == ["model.onnx"]
    judged = {one["variant"]: one["unquantized"] for one in summary["quantization"]}
    assert judged == dict(zip(GIVEN, FLOAT, strict=True))
    log = project.log(f"simplify_onnx/{MODEL}")
    assert "a quantized file: its logits differ from its float model's by" in log
    page = (project / "reports/summary.html").read_text()
    assert "in the file as given" in page
    assert project.plan() == set()
