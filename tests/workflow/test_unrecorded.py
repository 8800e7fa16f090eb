"""Files of whose making Snakemake has no record: they go on to be used while nothing changes."""

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from programs import printed_in
from tiny_project import CONFIG, MODEL, RACE, REPORT, Project

LATENCY = f"reports/{MODEL}/cpu-openvino-fp32.latency.json"
CHANGES: dict[str, dict[str, Any]] = {
    "calibration pool": {"calibration": {**CONFIG["calibration"], "pool": 48}},
    "latency": {"latency": {**CONFIG["latency"], "calls": 5}},
    "one engine less": {"engines": {"openvino": ["fp32", "bf16", "int8"]}},
}


@pytest.fixture
def bare(finished: Project, tmp_path: Path) -> Project:
    """The tiny project after one whole run, as of a cache: times in no order, Snakemake unaware."""
    folder, ignored = tmp_path / "bare", shutil.ignore_patterns(".snakemake")
    shutil.copytree(finished.folder, folder, ignore=ignored)
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    random.Random(0).shuffle(paths)
    for number, path in enumerate(paths):
        os.utime(path, (1.7e9 + number, 1.7e9 + number))
    return Project(folder)


def test_a_folder_without_records_plans_what_an_ordinary_one_does(bare, project) -> None:
    assert bare.plan() == set()
    for name, change in CHANGES.items():
        project.configure(**change)
        bare.configure(**change)
        shutil.rmtree(bare / ".snakemake")
        planned = project.plan()
        assert planned, name
        assert bare.plan() == planned, name


def test_what_was_current_stays_so_after_a_plan_and_a_run(bare: Project) -> None:
    bare.configure(latency=CHANGES["latency"]["latency"])
    planned = bare.plan()
    assert f"measure_latency/{MODEL}-cpu-openvino-fp32" in planned
    bare.configure()
    assert bare.plan() == set()
    assert bare.run("--", LATENCY) == set()


def test_a_file_without_a_digest_is_made_again(bare: Project) -> None:
    """As one of an earlier version is."""
    record = bare.read(LATENCY)
    record = {name: value for name, value in record.items() if name != "made_with"}
    (bare / LATENCY).write_text(json.dumps(record))
    done = bare.snakemake("--dry-run", "--verbose")
    assert bare.jobs(done) == {f"measure_latency/{MODEL}-cpu-openvino-fp32"} | RACE | REPORT
    assert done.stdout.count(" more: made with other settings or inputs, or by an earlier") == 1
    assert bare.snakemake("--summary").returncode == 0


def test_a_calibration_that_was_imported_is_not_made_again(bare: Project) -> None:
    cache = f"artifacts/{MODEL}/calibration/minmax-8.json"
    onnx = f"artifacts/{MODEL}/model.simplified.onnx"
    for words in (["export", cache, "out"], ["import", "out", onnx, cache, "--force"]):
        printed_in(bare.folder, "tools/tensorrt_cache.py", *words)
    planned = bare.plan()
    assert f"quantize_onnx/{MODEL}-u8s8-minmax-8" in planned
    assert f"calibrate/{MODEL}-minmax-8" not in planned


def test_another_file_in_the_place_of_an_onnx_file_is_made_again(bare: Project) -> None:
    folder = bare / f"artifacts/{MODEL}"
    shutil.copy(folder / "model.simplified.onnx", folder / "model.onnx")
    assert {f"export_onnx/{MODEL}", f"simplify_onnx/{MODEL}"} <= bare.plan()
    # the file beside it alone
    shutil.copy(folder / "model.onnx.json", folder / "model.simplified.onnx.json")
    assert f"simplify_onnx/{MODEL}" in bare.plan()
