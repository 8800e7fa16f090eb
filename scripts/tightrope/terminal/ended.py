"""Why jobs ended, as Snakemake reports it: the words of the job, of the system or a scheduler."""

import logging
import re
from pathlib import Path
from typing import Any

from tightrope.terminal.jobs import reason_in_log, reason_of_crash
from tightrope.terminal.plugin import LOGGER

# what Snakemake adds to the words of a scheduler
LOOK_ELSEWHERE = re.compile(r"\s*For further error details see the cluster/cloud log.*$", re.DOTALL)


# what Slurm says of a job that it does not take, in small letters, and the values of a profile that
# decide it
ABOUT = {
    "feature specification": "`constraint`, or that of the host under `hosts`",
    "account": "`account`",
    "partition": "`partition`",
    "memory specification": "`node_mb`",
    "node configuration is not available": "`cores` and `node_mb`",
    "time limit": "`longest_minutes`",
}


class EndedJobs(logging.Handler):
    """Snakemake log handler that keeps why each job ended, by its number in the run."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: dict[int, str] = {}
        self.exception = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the reason of a job that ended with an error; an error here never ends the run."""
        try:
            facts = record.__dict__
            event = str(facts.get("event") or "")
            if event == "error":
                self.exception = str(facts["msg"])
            elif event == "job_error":
                self.reasons[facts["jobid"]] = reason_of(facts, self.exception)
                self.exception = ""
        except Exception:
            self.handleError(record)


def watch_ended_jobs() -> EndedJobs:
    """Return a handler that Snakemake tells of the jobs that end."""
    handler = EndedJobs()
    logging.getLogger(LOGGER).addHandler(handler)
    return handler


def reason_of(facts: dict[str, Any], exception: str) -> str:
    """Return one line from a job's log, with the scheduler's words where it ran on a cluster."""
    logs = list(facts["log"])[:1]  # those that follow are the scheduler's
    said = " ".join(LOOK_ELSEWHERE.sub("", facts["rule_msg"] or "").split())
    number = facts["aux"].get("external_jobid")
    if number is None and not said:
        return reason_of_crash(logs, exception)
    own = next(filter(None, map(reason_in_log, map(Path, logs))), None)
    said = with_setting(said) or f"job {number} of the scheduler failed"
    return f"{own} ({said})" if own else said


def with_setting(said: str) -> str:
    """Return the words of a scheduler that refused a job, with the setting that they are about."""
    if "sbatch" not in said:
        return said
    about = [setting for words, setting in ABOUT.items() if words in said.lower()]
    return f"{said} Set {about[0]}: see profiles/README.md" if about else said
