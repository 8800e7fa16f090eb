"""What is planned again after a change: exactly what depends on it."""

import shutil
import subprocess
import sys

import onnx
from tightrope.data.splits import SPLITS
from tiny_project import (
    CONFIG,
    MODEL,
    ONNX_VARIANTS,
    OWN_ONNX,
    RACE,
    REPORT,
    VARIANTS,
    Project,
    builds_of,
    drawn,
    measurements_of,
    write_texts,
)

CHECKPOINT = {f"train_model/{MODEL}"}
ONNX = {f"export_onnx/{MODEL}", f"simplify_onnx/{MODEL}"}


def calibrated(samples: int) -> set[str]:
    """The jobs that calibrate for ONNX Runtime, and quantize."""
    calibration = f"{MODEL}-minmax-{samples}"
    return {f"calibrate/{calibration}", f"quantize_onnx/{MODEL}-u8s8-minmax-{samples}"}


DATA = {f"prepare_data/{MODEL}", *(f"split_data/{MODEL}-{name}" for name in SPLITS)}
PREPARED = DATA | {f"prepare_checkpoint/{MODEL}"}
INT8 = calibrated(8) | {f"calibrate/{MODEL}-nncf-8"} | drawn("simplified", "u8s8-minmax-8")
EVERYTHING = PREPARED | CHECKPOINT | ONNX | INT8 | builds_of(*VARIANTS) | measurements_of(*VARIANTS)


def test_a_fresh_project_plans_every_job_of_the_chain(unrun: Project) -> None:
    assert unrun.plan() == EVERYTHING


def test_comments_docstrings_formatting_and_times_plan_nothing(project: Project) -> None:
    for path in [project / "Snakefile", *(project / "rules").rglob("*.smk")]:
        path.touch()
    sources = sorted((project / "scripts").rglob("*.py"))
    assert len(sources) > 40
    for path in sources:
        text = path.read_text().replace('"""', '"""Edited. ', 1)
        path.write_text(f"# a comment at the top\n{text}\n\n# a comment at the end\n")
    narrow = [sys.executable, "-m", "ruff", "format", "--quiet", "--line-length", "60"]
    subprocess.run([*narrow, project / "scripts"], check=True)
    assert project.plan() == set()


def test_a_larger_calibration_runs_its_int8_chain_and_the_way_back_only_the_race(project) -> None:
    """Of the chain only ONNX Runtime's part, to spare time."""
    calibration = {**CONFIG["calibration"], "methods": ["minmax"], "samples": [16]}
    project.configure(engines={"onnxruntime": ["int8"]}, calibration=calibration)
    larger = "cpu-onnxruntime-int8-minmax-16"
    made = calibrated(16) | drawn("u8s8-minmax-16") | builds_of(larger)
    assert project.run() == made | measurements_of(larger)
    project.configure()
    assert project.plan() == RACE | REPORT


def test_a_changed_template_of_the_report_plans_render_report_alone(project: Project) -> None:
    path = project / "scripts/tightrope/report/template/page.css"
    path.write_text(path.read_text() + "\n")
    assert project.plan() == {"render_report/render_report"}


def test_another_version_of_a_library_plans_the_rules_that_use_it(project, tmp_path) -> None:
    facts = tmp_path / "site" / "vl_convert_python-99.0.dist-info" / "METADATA"
    facts.parent.mkdir(parents=True)
    facts.write_text("Metadata-Version: 2.1\nName: vl-convert-python\nVersion: 99.0\n")
    planned = project.plan(PYTHONPATH=str(tmp_path / "site"))
    assert planned == {"render_report/render_report"}


def test_changed_local_data_plans_everything_that_depends_on_it(project: Project) -> None:
    write_texts(project / "texts.csv", seed=1)
    assert project.plan() == EVERYTHING - {f"prepare_checkpoint/{MODEL}"}


def test_a_touched_file_of_the_user_plans_nothing_a_changed_one_all_of_it(onnx_project) -> None:
    file = onnx_project / OWN_ONNX
    for path in [onnx_project / "texts.csv", *file.parent.iterdir()]:
        path.touch()
    assert onnx_project.plan() == set()
    assert onnx_project.run() == set()
    model = onnx.load(file)
    model.doc_string = "changed"
    onnx.save(model, file)
    planned = onnx_project.plan()
    assert planned >= {f"prepare_checkpoint/{MODEL}", *CHECKPOINT, *ONNX}
    assert planned >= measurements_of(*ONNX_VARIANTS)
    assert not planned & DATA


def test_a_touched_checkpoint_folder_plans_nothing_and_a_changed_weight_its_copy(unrun, finished):
    shutil.copytree(finished / f"artifacts/{MODEL}/checkpoint", unrun / "own")
    (unrun / "own/checkpoint.json").unlink()
    keys = {**CONFIG["models"][MODEL], "checkpoint": "path:own", "train": None}
    unrun.configure(models={MODEL: keys})
    target = f"artifacts/{MODEL}/checkpoint/checkpoint.json"
    made = {f"prepare_data/{MODEL}", f"prepare_checkpoint/{MODEL}", *CHECKPOINT}
    assert unrun.run("--", target) == made
    for path in (unrun / "own").iterdir():
        path.touch()
    assert unrun.plan("--", target) == set()
    weights = bytearray((unrun / "own/model.safetensors").read_bytes())
    weights[-1] ^= 1
    (unrun / "own/model.safetensors").write_bytes(weights)
    assert unrun.plan("--", target) == made - {f"prepare_data/{MODEL}"}


def test_names_of_the_outputs_leave_data_and_source_as_they_are(onnx_project: Project) -> None:
    """The ONNX file's outputs are in the order of cat and dog."""
    model = onnx_project.models[MODEL]
    onnx_project.configure(models={MODEL: {**model, "labels": ["cat", "dog"]}})
    planned = onnx_project.plan()
    assert planned >= CHECKPOINT | ONNX | REPORT
    assert not planned & PREPARED


def test_another_file_of_the_same_configuration_plans_the_report_that_names_it(project) -> None:
    shutil.copy(project / "config/config.yaml", project / "config/mine.yaml")
    assert project.plan("--configfile", "config/mine.yaml") == REPORT
    assert project.plan("--config", "retry_failed=true") == set()
