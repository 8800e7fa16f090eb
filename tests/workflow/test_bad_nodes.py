"""A slow shared file system, clocks that differ, a full disk: one line, and a report.

A full scratch disk of a job: tests/unit/jobs/test_child.py.
"""

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from mounts import mounted
from tiny_project import MODEL, RACE, REPORT, Project

FP32, BF16, INT8 = "cpu-openvino-fp32", "cpu-openvino-bf16", "cpu-openvino-int8-nncf-8"
BASELINE, ORT = "cpu-onnxruntime-fp32", "cpu-onnxruntime-int8-minmax-8"
WAIT, HOUR = 4, 3600
# What the shared file system and the clock of a node do to the files that a job wrote there. A run
# that goes on is on the machine that reads them.
NODE = """
import json, os, subprocess
from pathlib import Path

faults = json.loads(Path("faults.json").read_text())
fault, seconds = faults.get(job.wildcards.variant, (None, 0))
record, logits = Path(job.output.record).absolute(), Path(job.output.logits).absolute()
if fault == "late" and not os.environ.get("TIGHTROPE_CONTINUES"):
    for path in (record, logits):
        away = path.with_name(path.name + ".away")
        path.rename(away)
        words = ["sh", "-c", f"exec <&- >&- 2>&-; sleep {seconds}; mv {away} {path}"]
        seconds and subprocess.Popen(words, start_new_session=True)
if fault == "clock":
    when = record.stat().st_mtime + seconds
    os.utime(record, (when, when))
"""
UNSEEN = (
    f"reports/{MODEL}/{ORT}.accuracy.json and 1 more: not seen within {WAIT} s after the job that "
    "writes it; where the file system is slow, raise latency-wait in profiles/slurm/config.yaml, "
    "or say --latency-wait SECONDS, and run again"
)
LATE = [f"reports/{MODEL}/{ORT}.{kind}" for kind in ("accuracy.json", "logits.npy")]


def lines_with(said: str, words: str) -> list[str]:
    return [line.strip() for line in said.splitlines() if words in line]


def set_time(path: Path, seconds: float) -> None:
    when = time.time() + seconds
    os.utime(path, (when, when))


@pytest.fixture(scope="module")
def disturbed(finished_onnx: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project after a run with one record unseen, one late, two with an hour's error.

    The engine of a fifth variant has a time in the future.
    """
    project = finished_onnx.copy(tmp_path_factory.mktemp("nodes") / "project")
    with (project / "scripts/measure_accuracy.py").open("a") as stream:
        stream.write(NODE)
    faults = {ORT: ("late", None), FP32: ("late", 1), INT8: ("clock", HOUR)}
    faults |= {BASELINE: ("clock", -HOUR)}
    (project / "faults.json").write_text(json.dumps(faults))
    set_time(project / f"artifacts/{MODEL}/engines/{BF16}/engine.json", HOUR)
    done = project.snakemake("--latency-wait", str(WAIT))
    assert done.returncode == 1, done.stdout
    (project / "said").write_text(done.stdout)
    return project


def test_a_file_that_comes_too_late_is_one_line_with_the_setting_and_a_failed_variant(disturbed):
    said = (disturbed / "said").read_text()
    assert lines_with(said, "not seen within") == [f"error: {UNSEEN}"]
    found = disturbed.results()[ORT]
    assert (found["status"], found["reason"]) == ("failed", UNSEEN)
    assert "Report: reports/summary.html" in said
    assert "Exception" not in said
    assert UNSEEN.split(";")[0] in (disturbed / "reports/summary.html").read_text()


def test_files_that_come_in_time_and_those_of_a_wrong_clock_are_results(disturbed, finished_onnx):
    # where this CPU has no bf16 its variant had failed before
    wanted = finished_onnx.statuses() | {ORT: "failed", BF16: "failed"}
    assert disturbed.statuses() == wanted


def test_an_input_of_the_future_is_named_and_its_time_is_set_right(disturbed: Project) -> None:
    engine = f"artifacts/{MODEL}/engines/{BF16}/engine.json"
    reason = disturbed.results()[BF16]["reason"]
    assert reason.startswith(f"{engine}: its time ")
    assert reason.endswith(
        "so a clock is wrong; set the clocks of all machines (NTP), "
        f"say: touch {engine}, and run again"
    )
    assert (disturbed / engine).stat().st_mtime <= time.time()


def test_the_next_run_makes_what_is_left_and_nothing_else(disturbed, copied) -> None:
    project = copied(disturbed)
    (project / "faults.json").write_text("{}")
    # one that comes only now, in the place of its failure, is measured again too
    for file in LATE:
        (project / f"{file}.away").rename(project / file)
    left = {f"measure_accuracy/{MODEL}-{variant}" for variant in (BF16, ORT)}
    assert project.plan() == left | RACE | REPORT


def test_a_file_of_the_user_from_the_future_is_named(finished_onnx, copied) -> None:
    project = copied(finished_onnx)
    texts = project / "texts.csv"
    texts.write_text(texts.read_text() + "the old cat purrs near whiskers,cat\n")
    set_time(texts, HOUR)
    done = project.snakemake()
    assert done.returncode == 1
    (line,) = lines_with(done.stdout, "its time")
    assert line.startswith("error: texts.csv: its time ")
    assert line.endswith("say: touch texts.csv, and run again")
    assert texts.stat().st_mtime > time.time()
    texts.touch()
    assert f"prepare_data/{MODEL}" in project.plan()
    assert f"prepare_data/{MODEL}" in project.plan("reports/summary.html")


def test_a_report_that_found_no_room_is_written_by_the_next_run(finished_onnx, copied) -> None:
    project = copied(finished_onnx)
    with (project / "scripts/render_report.py").open("a") as stream:
        stream.write(
            "import os\n"
            "if os.path.exists('full'):\n"
            "    raise OSError(28, 'No space left on device', 'reports/summary.html')\n"
        )
    (project / "full").touch()
    done = project.snakemake()
    assert done.returncode == 1
    (line,) = {*lines_with(done.stdout, "No space left on device")}
    assert line.startswith("error: reports/summary.html: cannot be written (No space left")
    assert (project / "reports/summary.html").is_file()
    (project / "full").unlink()
    assert "render_report/render_report" in project.plan()


def test_a_run_on_a_full_disk_is_refused_with_one_line(finished_onnx, copied) -> None:
    project = copied(finished_onnx)
    shutil.move(project / ".snakemake", project / "before")
    folder = project / ".snakemake"
    with mounted(folder, "-o", "size=1m"):
        (folder / "of-others").write_bytes(bytes(2**20 - 8192))
        done = project.snakemake("--forcerun", "render_report")
    assert done.returncode == 1
    (line,) = lines_with(done.stdout, "No space left on device")
    assert line.startswith(f"{folder}: cannot be written (No space left")
    assert "Traceback" not in done.stdout


def test_a_build_on_a_full_disk_is_an_error_with_its_path_and_no_record_of_a_failure(
    finished_onnx, copied
) -> None:
    project, job = copied(finished_onnx), f"build_openvino/{MODEL}-cpu-int8-nncf-8"
    engine = f"artifacts/{MODEL}/engines/{INT8}/engine.json"
    folder = (project / engine).parent
    shutil.rmtree(folder)
    with mounted(folder, "-o", "size=4k"):
        done = project.snakemake("--allowed-rules", "build_openvino", "--", engine)
        assert not (project / engine).is_file()
    assert done.returncode != 0, done.stdout
    (error,) = [line for line in project.log(job).splitlines() if line.startswith("error: ")]
    assert INT8 in error and "No space left on device" in error
    assert error in done.stdout
    assert "Traceback" not in project.log(job)
