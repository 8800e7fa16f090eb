"""A model that is trained with quantized values: its ranges in the place of calibration."""

import json
from typing import Any

from tiny_project import CONFIG, MODEL, Project

QUANTIZED = "quantized"
CHECKPOINT = f"artifacts/{QUANTIZED}/checkpoint/checkpoint.json"
FILE = f"artifacts/{QUANTIZED}/quantized/u8s8-qat-8.onnx"
QAT = {"scheme": "u8s8", "epochs": 1, "batch": 16, "sequence": 16, "device": "cpu"}


def family(**changes: Any) -> dict[str, Any]:
    child = {"from": MODEL, "prune": {"layers": 1}, "qat": QAT, **changes}
    return {MODEL: CONFIG["models"][MODEL], QUANTIZED: child}


def test_its_int8_variants_take_the_learnt_ranges_and_no_other_models_do(unrun: Project) -> None:
    unrun.configure(models=family())
    planned = unrun.plan()
    assert {
        f"train_model/{MODEL}",
        f"train_model/{QUANTIZED}",
        f"split_data/{QUANTIZED}-train",
        f"calibrate/{QUANTIZED}-qat-8",
        f"quantize_onnx/{QUANTIZED}-u8s8-qat-8",
        f"build_onnxruntime/{QUANTIZED}-cpu-int8-qat-8",
        f"build_openvino/{QUANTIZED}-cpu-int8-qat-8",
        f"calibrate/{MODEL}-minmax-8",
        f"calibrate/{MODEL}-nncf-8",
    } <= planned
    assert not [job for job in planned if job.startswith(f"calibrate/{QUANTIZED}-minmax")]
    assert not [job for job in planned if f"{MODEL}-" in job and "-qat-" in job]


def test_outputs_are_trained_for_the_repair_that_rounds_them(unrun: Project) -> None:
    usual = {"usual": {"outputs": True, "activations": "symmetric"}}
    models = family(qat={**QAT, "scheme": "s8s8", "outputs": True})
    unrun.configure(models=models, repairs=usual)
    file = f"artifacts/{QUANTIZED}/quantized/u8s8-qat-8-usual.onnx"
    planned = unrun.plan()
    assert {
        f"quantize_onnx/{QUANTIZED}-u8s8-qat-8-usual",
        f"build_onnxruntime/{QUANTIZED}-cpu-int8-qat-8-usual",
        f"build_openvino/{QUANTIZED}-cpu-int8-qat-8-usual",
    } <= planned
    assert f"train_model/{QUANTIZED}" in unrun.run(file)
    learnt = json.loads((unrun / CHECKPOINT).read_text())["qat"]
    cache = json.loads((unrun / f"artifacts/{QUANTIZED}/calibration/qat-8.json").read_text())
    assert set(learnt["outputs"]) == set(learnt["ranges"]) and cache["method"] == "qat"
    assert learnt["outputs"]["classifier"] == cache["ranges"]["logits"]
    assert unrun.plan(file) == set()
    unrun.configure(models=family(qat={**QAT, "scheme": "s8s8"}), repairs=usual)
    planned = unrun.plan(file)
    assert f"train_model/{QUANTIZED}" in planned and f"train_model/{MODEL}" not in planned


def test_one_training_makes_float_weights_and_ranges_for_the_quantized_file(
    project: Project,
) -> None:
    project.configure(models=family())
    ran = project.run(FILE)
    assert f"train_model/{QUANTIZED}" in ran and f"train_model/{MODEL}" not in ran
    manifest = json.loads((project / CHECKPOINT).read_text())
    assert manifest["qat"]["scheme"] == "u8s8" and manifest["prune"]["layers"] == 1
    cache = json.loads((project / f"artifacts/{QUANTIZED}/calibration/qat-8.json").read_text())
    learnt = manifest["qat"]["ranges"]
    assert all(pair in cache["ranges"].values() for pair in learnt.values())
    assert project.plan(FILE) == set()
    project.configure(models=family(qat={**QAT, "scheme": "s8s8"}))
    planned = project.plan(FILE)
    assert f"train_model/{QUANTIZED}" in planned and f"train_model/{MODEL}" not in planned


def test_a_change_of_its_training_trains_no_other_model_again(project: Project) -> None:
    path = "scripts/tightrope/training/quantization_aware.py"
    project.configure(models=family())
    project.edit(path, "SAMPLES = 256", "SAMPLES = 255")
    assert project.plan(f"artifacts/{MODEL}/checkpoint/checkpoint.json") == set()


def test_train_and_qat_are_two_models(unrun: Project) -> None:
    unrun.configure(models=family(train={"epochs": 1}))
    done = unrun.snakemake("--dry-run")
    assert done.returncode != 0
    assert (
        f"models.{QUANTIZED}.qat: the model has train too; move qat to another model, which "
        f"starts from: {QUANTIZED}"
    ) in done.stdout


def test_it_is_no_method_of_the_configuration(unrun: Project) -> None:
    calibration = {**CONFIG["calibration"], "methods": ["qat"]}
    unrun.configure(models=family(), calibration=calibration)
    done = unrun.snakemake("--dry-run")
    assert done.returncode != 0 and "calibration.methods" in done.stdout
