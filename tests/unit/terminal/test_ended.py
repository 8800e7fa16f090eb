"""Why a job ended, from what Snakemake says and from the job's own log."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest
from onnx.helper import make_graph, make_model
from tightrope.artifacts.failures import write_failure
from tightrope.terminal.ended import EndedJobs, failure_of

SLURM = (
    "SLURM-job '12' failed, SLURM status is: 'TIMEOUT'. Reason: Unknown."
    "For further error details see the cluster/cloud log and the log files of the involved rule(s)."
)

# Snakemake's words on the machine of the run, and in the log of a node
RECORD = "reports/tiny/cpu-openvino-bf16.accuracy.json"
UNSEEN = f"""MissingOutputException in rule measure_accuracy in file "rules/measure.smk", line 93:
Job 25  completed successfully, but some output files are missing. Missing files after 4 seconds. \
This might be due to filesystem latency. If that is the case, consider to increase the wait time \
with --latency-wait:
{RECORD} (missing locally, parent dir contents: cpu-openvino-fp32.latency.json, cpu.race.json)
"""
ENGINE = "artifacts/tiny/engines/cpu-openvino-bf16/engine.json"
OLDER = f"""WorkflowError in rule measure_accuracy in file "rules/measure.smk", line 93:
Output {RECORD} has older modification time (2026-11-27 02:39:29.151753) than input {ENGINE} \
(2026-11-27 03:39:05.397625). This could indicate a clock skew problem in your network and would \
trigger a rerun of this job in the next execution and should therefore be fixed on system level. \
System time: 2026-11-27 02:39:29.154869 (rule measure_accuracy, line 165, rules/measure.smk)
"""


KILLED = "killed by SIGKILL (out of memory, or from outside)"


def listener() -> EndedJobs:
    storage = SimpleNamespace(default_storage_provider=None)
    return EndedJobs(SimpleNamespace(storage_settings=storage))


def told(handler: EndedJobs, **facts: Any) -> None:
    record = logging.makeLogRecord({"msg": "", **facts})
    handler.handle(record)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job.log"
    path.write_text("a line\n")
    return path


def ended(own_log: Path, **facts: Any) -> str:
    handler = listener()
    event = {"event": "job_error", "jobid": 3, "rule_msg": None, "aux": {}, "log": [str(own_log)]}
    words = "Command 'python x' died with <Signals.SIGKILL: 9>."
    told(handler, event="error", msg=f'CalledProcessError in file "a.smk", line 1:\n{words}')
    told(handler, **{**event, **facts})
    return handler.reasons[3]


def test_the_words_of_the_scheduler_without_what_snakemake_adds_follow_those_of_the_job(log):
    number = {"external_jobid": "12"}
    words = "SLURM-job '12' failed, SLURM status is: 'TIMEOUT'. Reason: Unknown."
    assert ended(log, rule_msg=SLURM, aux=number) == words
    assert ended(log, aux=number) == "job 12 of the scheduler failed"
    log.write_text("error: tiny.csv: cannot be read\n")
    assert ended(log, rule_msg=SLURM, aux=number) == f"tiny.csv: cannot be read ({words})"
    for text, reason in (
        ("error: tiny.csv: no column\n", "tiny.csv: no column"),
        ("1/2\nTraceback (most recent call last):\n  x\nValueError: bad\n", "ValueError: bad"),
        ("error: a\x1b[2Jb\n", "a\\x1b[2Jb"),
        ("predicting: 40%|##\n", KILLED),
    ):
        log.write_text(text)
        assert ended(log) == reason
    assert ended(log.with_name("missing.log")) == KILLED


@pytest.mark.parametrize(
    ("words", "setting"),
    [
        ("Invalid feature specification", "`constraint`, or that of the host under `hosts`"),
        ("invalid partition specified: gpu", "`partition`"),
        ("Invalid account or account/partition combination specified", "`account`"),
        ("Requested node configuration is not available", "`cores` and `node_mb`"),
        ("Requested time limit is invalid (missing or exceeds some limit)", "`longest_minutes`"),
    ],
)
def test_a_refusal_of_sbatch_names_the_setting_to_change(log, words, setting):
    refusal = f"SLURM sbatch failed. The error message was 'sbatch: error: {words}'."
    message = f"{refusal}\n    sbatch call:\n        sbatch --parsable --wrap='python …'\n"
    assert ended(log, rule_msg=message) == f"{refusal} Set {setting}: see profiles/README.md"


@pytest.mark.parametrize(
    ("words", "reason", "ahead"),
    [
        (UNSEEN, "not seen within 4 s after the job that writes it; where the file system", set()),
        (OLDER, "its time 2026-11-27 03:39:05 is later than that of", {ENGINE}),
    ],
)
def test_why_snakemake_refuses_a_job_that_ended_well_belongs_to_its_files(words, reason, ahead):
    handler = listener()
    told(handler, event="error", msg=words)
    assert reason in handler.reason_of(3, [RECORD])
    assert handler.reason_of(4, ["another.json"]) == "ended without a reason"
    assert handler.ahead == ahead
    # the last attempt of a job says why it ended
    handler = listener()
    told(handler, event="error", msg=UNSEEN)
    event = {"event": "job_error", "jobid": 3, "rule_msg": None, "aux": {}, "log": [str(log)]}
    told(handler, **event, output=[RECORD])
    assert handler.reason_of(3, [RECORD]) == "ended with an error and left no reason"
    told(handler, event="error", msg=UNSEEN)
    assert "not seen within" in handler.reason_of(3, [RECORD])


def test_what_snakemake_says_on_a_node_is_in_the_log_of_the_scheduler(log, tmp_path):
    node = tmp_path / "12.log"
    node.write_text(f"host: node-3\nBuilding DAG of jobs...\n{OLDER}Exiting\n")
    logs = [str(log), str(node)]
    said = ended(log, log=logs, rule_msg=SLURM, aux={"external_jobid": "12"})
    assert said.startswith(f"{ENGINE}: its time ")
    assert f"(NTP), say: touch {ENGINE}, and run again (SLURM-job '12' failed" in said


@pytest.mark.parametrize("name", ["engine.json", "model.onnx"])
def test_a_record_of_a_failure_gives_its_reason_fit_for_a_terminal(tmp_path, name):
    path = tmp_path / name
    write_failure(path, reason="a\x1b[2Jb was not made", transient=False)
    assert failure_of([str(path)]) == "a\\x1b[2Jb was not made"
    if name.endswith(".json"):
        path.write_text('{"status": ')
        assert str(path) in str(failure_of([str(path)]))
    # what was made is none
    (tmp_path / "ok.json").write_text('{"status": "ok"}')
    (tmp_path / "page.html").write_text("failed")
    onnx.save(make_model(make_graph([], "empty", [], [])), tmp_path / "made.onnx")
    made = ("ok.json", "page.html", "made.onnx", "missing.json")
    assert failure_of([str(tmp_path / one) for one in made]) is None
