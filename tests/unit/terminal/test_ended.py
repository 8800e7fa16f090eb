"""Why a job ended, from what Snakemake says and from the job's own log."""

import logging
from pathlib import Path
from typing import Any

import pytest
from tightrope.terminal.ended import EndedJobs

SLURM = (
    "SLURM-job '12' failed, SLURM status is: 'TIMEOUT'. Reason: Unknown."
    "For further error details see the cluster/cloud log and the log files of the involved rule(s)."
)


def told(handler: EndedJobs, **facts: Any) -> None:
    record = logging.makeLogRecord({"msg": "", **facts})
    handler.handle(record)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job.log"
    path.write_text("a line\n")
    return path


def ended(log: Path, **facts: Any) -> str:
    handler = EndedJobs()
    event = {"event": "job_error", "jobid": 3, "rule_msg": None, "aux": {}, "log": [str(log)]}
    told(handler, event="error", msg="Command 'python x' died with <Signals.SIGKILL: 9>.")
    told(handler, **{**event, **facts})
    return handler.reasons[3]


def test_the_words_of_the_scheduler_without_what_snakemake_adds(log: Path) -> None:
    said = ended(log, rule_msg=SLURM, aux={"external_jobid": "12"})
    assert said == "SLURM-job '12' failed, SLURM status is: 'TIMEOUT'. Reason: Unknown."


def test_the_jobs_own_words_come_first(log: Path) -> None:
    log.write_text("error: tiny.csv: cannot be read\n")
    said = ended(log, rule_msg=SLURM, aux={"external_jobid": "12"})
    assert said.startswith("tiny.csv: cannot be read (SLURM-job '12' failed, ")
    assert ended(log) == "tiny.csv: cannot be read"


@pytest.mark.parametrize(
    ("words", "setting"),
    [
        ("Invalid feature specification", "`constraint`, or that of the host under `hosts`"),
        ("invalid partition specified: gpu", "`partition`"),
        ("Invalid account or account/partition combination specified", "`account`"),
        ("Memory specification can not be satisfied", "`node_mb`"),
        ("Requested node configuration is not available", "`cores` and `node_mb`"),
        ("Requested time limit is invalid (missing or exceeds some limit)", "`longest_minutes`"),
    ],
)
def test_a_refusal_of_sbatch_names_the_setting_to_change(
    log: Path, words: str, setting: str
) -> None:
    refusal = f"SLURM sbatch failed. The error message was 'sbatch: error: {words}'."
    assert ended(log, rule_msg=refusal) == f"{refusal} Set {setting}: see profiles/README.md"


def test_a_signal_ends_a_job_on_this_machine(log: Path) -> None:
    assert ended(log) == "killed by SIGKILL (out of memory, or from outside)"


def test_a_scheduler_without_words(log: Path) -> None:
    assert ended(log, aux={"external_jobid": "7"}) == "job 7 of the scheduler failed"
