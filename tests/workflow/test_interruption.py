"""A killed run goes on with the plain command, and a second run does not disturb the first."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest
import tightrope
from programs import run_in
from tightrope.data.splits import SPLITS
from tiny_project import CONFIG, MODEL, Project

# what a run of this engine alone makes with the same bytes each time, and its variants
ENGINES = {"onnxruntime": ["int8"]}
VARIANTS = ("cpu-pytorch-fp32", "cpu-onnxruntime-int8-minmax-8")
REPRODUCED = [f"splits/{one}.json" for one in SPLITS] + [
    *("data/pool.jsonl", "source/model.safetensors", "checkpoint/model.safetensors"),
    *("checkpoint/tokenizer.json", "model.onnx", "model.simplified.onnx"),
    *("calibration/minmax-8.json", "quantized/u8s8-minmax-8.onnx"),
]
# what a stopped run prints last, and all that it prints of the signal
STOPPED = ["stopped after {} jobs", "To continue, run the same command."]
CHECKPOINT = f"artifacts/{MODEL}/checkpoint/checkpoint.json"
# a job that takes a minute, does not hear SIGTERM and has started another program
DEAF = """
import signal, subprocess, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
subprocess.Popen(["sleep", "60"])
time.sleep(60)
"""


def wait_until(running: subprocess.Popen[str], begun: Callable[[], object]) -> None:
    """Return when that is so; the run must go on until then."""
    while not begun():
        assert running.poll() is None, running.stdout and running.stdout.read()
        time.sleep(0.01)


def wait_for(running: subprocess.Popen[str], job: str, project: Project) -> None:
    """Return when the script of `job` has begun: it opens its log first."""
    log = project / f"artifacts/logs/{job}.log"
    log.unlink(missing_ok=True)
    wait_until(running, log.is_file)


def kill(running: subprocess.Popen[str]) -> str:
    """Kill the whole process group, as an emptied battery does; return what it has printed."""
    os.killpg(running.pid, signal.SIGKILL)
    return running.communicate(timeout=30)[0]


def stop(running: subprocess.Popen[str], number: int, *, group: bool) -> list[str]:
    """The lines of a run that a signal ends in time, to itself alone or to all its processes."""
    (os.killpg if group else os.kill)(running.pid, number)
    output, _ = running.communicate(timeout=30)
    assert running.returncode not in (0, None)
    return output.splitlines()


def at_work(project: Project) -> dict[int, str]:
    """Command lines of the processes of any run in the project's folder, by process id."""
    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it may end meanwhile
            if process.cwd() == str(project.folder) and process.status() != psutil.STATUS_ZOMBIE:
                found[process.pid] = " ".join(process.cmdline())
    return found


def differences(project: Project, reference: Project) -> list[str]:
    """The files that are not those of the reference, and those that were left half written."""
    paths = [f"artifacts/{MODEL}/{name}" for name in REPRODUCED]
    found = [one for one in paths if (project / one).read_bytes() != (reference / one).read_bytes()]
    for record in (f"reports/{MODEL}/{variant}.accuracy.json" for variant in VARIANTS):
        ours, theirs = (each.read(record)["predictions"] for each in (project, reference))
        found += [record] if ours != theirs else []
    return found + [path for path in project.files() if path.endswith(".part")]


def test_a_run_that_was_stopped_and_killed_goes_on_to_the_same_result(unrun, finished) -> None:
    """Ctrl-C reaches all processes, SIGTERM Snakemake alone."""
    unrun.configure(engines=ENGINES, models=CONFIG["models"])
    training = f"train_model/{MODEL}"
    for number, group in ((signal.SIGINT, True), (signal.SIGTERM, False)):
        running = unrun.start()
        wait_for(running, training, unrun)
        # its child has begun to train
        wait_until(running, lambda: "fine-tuning" in unrun.log(training))
        lines = stop(running, number, group=group)
        assert re.fullmatch(r"stopped after \d of \d+ jobs", lines[-2])
        assert lines[-1] == STOPPED[1]
        assert "Traceback" not in "".join(lines)
        assert not at_work(unrun)

    running = unrun.start()
    state = unrun / f"artifacts/{MODEL}/work/training/state.json"
    wait_until(running, state.is_file)
    kill(running)
    assert not (unrun / CHECKPOINT).exists()
    latency = f"measure_latency/{MODEL}-cpu-onnxruntime-int8-minmax-8"
    said = []
    for job, seconds in [(f"export_onnx/{MODEL}", 1.0), (latency, 1.5)]:
        running = unrun.start()
        wait_for(running, job, unrun)
        time.sleep(seconds)
        said.append(kill(running))
    assert "fine-tuning: goes on after step" in said[0]
    assert not state.parent.exists()

    unrun.run()
    assert unrun.plan() == set()
    assert differences(unrun, finished) == []


def test_where_snakemake_alone_is_killed_its_job_ends_before_the_next_begins(onnx_project) -> None:
    """Else it would go on beside the next run's, in the same folder."""
    engine = f"artifacts/{MODEL}/engines/cpu-openvino-int8-nncf-8/engine.json"
    job = f"build_openvino/{MODEL}-cpu-int8-nncf-8"
    (onnx_project / engine).unlink()
    first = onnx_project.start("--", engine)
    wait_for(first, job, onnx_project)
    time.sleep(1.0)
    os.kill(first.pid, signal.SIGKILL)
    orphans = at_work(onnx_project).keys() - {first.pid}
    assert orphans
    second = onnx_project.start("--", engine)
    wait_for(second, job, onnx_project)
    assert not orphans & at_work(onnx_project).keys()
    output, _ = second.communicate(timeout=300)
    assert second.returncode == 0, output
    first.communicate(timeout=30)


def test_a_second_run_is_refused_also_after_unlock_and_a_dry_run_is_not(unrun: Project) -> None:
    unrun.edit("scripts/prepare_data.py", "job = current_job(globals())\n", f"{DEAF}\n")
    data = f"artifacts/{MODEL}/data/data.json"
    first = unrun.start("--", data)
    wait_until(first, lambda: "sleep 60" in at_work(unrun).values())
    assert unrun.snakemake("--unlock").returncode == 0
    files = unrun.files()
    done = unrun.snakemake("--config", "retry_failed=true", "--", data)
    assert done.returncode == 1
    profile, line = done.stdout.splitlines()
    assert profile.startswith("Using workflow specific profile")
    assert line.startswith(f"{unrun.folder}: a run works here already (")
    assert f", process {first.pid}, since " in line
    assert line.endswith("Nothing was changed")
    assert unrun.files() == files
    assert unrun.plan("--", data) == {f"prepare_data/{MODEL}"}
    # its job does not hear: it is killed with what it has started
    lines = stop(first, signal.SIGTERM, group=False)
    assert lines[-2:] == [STOPPED[0].format("0 of 1"), STOPPED[1]]
    assert not at_work(unrun)


def is_planned(project: Project) -> bool:
    return (project / ".snakemake/run.lock").is_file()


def is_started(project: Project) -> bool:
    """Whether the Python of a job has begun to import, and no signal handler is set."""
    return any("/scripts/tmp" in words for words in at_work(project).values())


@pytest.mark.parametrize(("begun", "last"), [(is_planned, 1), (is_started, 2)])
def test_a_signal_while_snakemake_plans_or_a_job_starts_prints_no_traceback(unrun, begun, last):
    running = unrun.start("--", CHECKPOINT)
    wait_until(running, partial(begun, unrun))
    time.sleep(0.05 * last)
    lines = stop(running, signal.SIGINT, group=True)
    assert lines[-last:] == [STOPPED[0].format("0 of 4"), STOPPED[1]][-last:]
    assert "Traceback" not in "".join(lines)
    assert not at_work(unrun)


def test_nothing_is_printed_of_what_a_signal_breaks_in_snakemake() -> None:
    """It may come between the making of a coroutine and its start, or as an event loop closes."""
    planning = """
import logging, os, signal
from tightrope.terminal.plugin import watch_signals

async def plan():
    pass

watch_signals(local=False)
try:
    begun = plan()
    os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    logging.getLogger("snakemake").error("Traceback")
    raise RuntimeError("Cannot close a running event loop")
"""
    scripts = Path(tightrope.__file__).parents[1]
    done = run_in(scripts, "-c", planning, PYTHONPATH=str(scripts))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
