"""A killed run goes on with the plain command, and a second run does not disturb the first."""

import json
import os
import signal
import subprocess
import time
from contextlib import suppress

import psutil
from tiny_project import CONFIG, MODEL, Project

# the parts of the tiny project that a run with these engines makes
ENGINES = {"onnxruntime": ["int8"]}
REPRODUCED = (
    "data/pool.jsonl",
    "splits/train.json",
    "splits/evaluation.json",
    "splits/calibration.json",
    "splits/timing.json",
    "source/model.safetensors",
    "checkpoint/model.safetensors",
    "checkpoint/tokenizer.json",
    "model.onnx",
    "model.simplified.onnx",
    "calibration/minmax-8.json",
    "quantized/u8s8-minmax-8.onnx",
)


def wait_for(running: subprocess.Popen[str], job: str, project: Project) -> None:
    """Return when the script of `job` has begun: it opens its log first."""
    log = project / f"artifacts/logs/{job}.log"
    log.unlink(missing_ok=True)
    while not log.is_file():
        assert running.poll() is None, running.stdout and running.stdout.read()
        time.sleep(0.02)


def kill(running: subprocess.Popen[str]) -> None:
    """Kill the whole process group, as a closed terminal or an emptied battery does."""
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate(timeout=30)


def predictions(project: Project, variant: str) -> list[int]:
    record = project / f"reports/{MODEL}/{variant}.accuracy.json"
    return json.loads(record.read_text())["predictions"]


def test_a_killed_run_goes_on_to_the_same_result_while_a_second_one_is_refused(
    unrun: Project, finished: Project
) -> None:
    unrun.configure(engines=ENGINES, models=CONFIG["models"])
    moments = [
        (f"prepare_data/{MODEL}", 0.3),
        (f"train_model/{MODEL}", 2.5),
        (f"export_onnx/{MODEL}", 1.0),
        (f"measure_latency/{MODEL}-cpu-onnxruntime-int8-minmax-8", 1.5),
    ]
    for job, seconds in moments:
        running = unrun.start()
        wait_for(running, job, unrun)
        time.sleep(seconds)
        kill(running)
    running = unrun.start()
    wait_for(running, moments[-1][0], unrun)
    second = unrun.snakemake("--config", "retry_failed=true")
    assert second.returncode != 0
    assert "Directory cannot be locked" in second.stdout
    output, _ = running.communicate(timeout=300)
    assert running.returncode == 0, output
    assert unrun.plan() == set()
    for name in REPRODUCED:
        path = f"artifacts/{MODEL}/{name}"
        assert (unrun / path).read_bytes() == (finished / path).read_bytes(), path
    for variant in ("cpu-pytorch-fp32", "cpu-onnxruntime-int8-minmax-8"):
        assert predictions(unrun, variant) == predictions(finished, variant)
    assert not [path for path in unrun.files() if path.endswith(".part")]


def at_work(project: Project) -> list[psutil.Process]:
    """Processes of any run in the project's folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cwd() == str(project.folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_where_snakemake_alone_is_killed_its_build_ends_and_writes_nothing(
    onnx_project: Project,
) -> None:
    """Else it would go on beside the next run's, in the same folder."""
    engine = f"artifacts/{MODEL}/engines/cpu-openvino-int8-nncf-8/engine.json"
    (onnx_project / engine).unlink()
    running = onnx_project.start("--", engine)
    wait_for(running, f"build_openvino/{MODEL}-cpu-int8-nncf-8", onnx_project)
    time.sleep(1.0)
    os.kill(running.pid, signal.SIGKILL)
    assert at_work(onnx_project)
    deadline = time.monotonic() + 10
    while at_work(onnx_project):
        assert time.monotonic() < deadline, at_work(onnx_project)
        time.sleep(0.1)
    running.communicate(timeout=30)
    assert not (onnx_project / engine).exists()
