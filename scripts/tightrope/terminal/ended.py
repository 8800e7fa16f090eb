"""Why jobs ended, as Snakemake reports it: the words of the job, of the system or a scheduler."""

import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tightrope.terminal.file_times import refusal_in
from tightrope.terminal.job_files import Files, files_of, here, read_log
from tightrope.terminal.jobs import reason_in_log, reason_of_crash
from tightrope.terminal.plugin import LOGGER

# what Snakemake adds to the words of a scheduler
LOOK_ELSEWHERE = re.compile(r"\s*For further error details see the cluster/cloud log.*$", re.DOTALL)
NO_REASON = "ended without a reason"
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
    """Snakemake log handler that keeps why each job ended.

    `reasons` has them by the number of a job in the run, `refusals` by output: of a job that ended
    well, and that Snakemake then does not accept, it does not say the number. `ahead` are inputs
    that are newer than what was made from them.
    """

    def __init__(self, files: Files = here) -> None:
        """Read the logs of jobs, which `files` gives."""
        super().__init__()
        self.files = files
        self.reasons: dict[int, str] = {}
        self.refusals: dict[str, str] = {}
        self.ahead: set[str] = set()
        self.exception = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the reason of a job that ended with an error; an error here never ends the run."""
        try:
            facts = record.__dict__
            event = str(facts.get("event") or "")
            if event == "error":
                self.keep_error(str(facts["msg"]))
            elif event == "job_error":
                self.reasons[facts["jobid"]] = reason_of(facts, self.exception, self.files)
                self.exception = ""
                # an attempt that was refused has been followed by this one
                self.refusals = {
                    path: reason
                    for path, reason in self.refusals.items()
                    if path not in facts.get("output", ())
                }
        except Exception:
            self.handleError(record)

    def keep_error(self, text: str) -> None:
        """Keep an exception for the event of its job that follows, or why files are refused."""
        refusal = refusal_in(text)
        if refusal is None:
            self.exception = text
            return
        self.refusals |= dict.fromkeys(refusal.files, refusal.reason)
        if refusal.newer is not None:
            self.ahead.add(refusal.newer)

    def reason_of(self, number: int, outputs: Iterable[str]) -> str:
        """Return why the job with this number and these outputs ended."""
        refused = next((self.refusals[path] for path in outputs if path in self.refusals), None)
        return refused or self.reasons.get(number, NO_REASON)


def watch_ended_jobs(workflow: Any) -> EndedJobs:
    """Return a handler that Snakemake tells of the jobs of `workflow` that end."""
    handler = EndedJobs(files_of(workflow))
    logging.getLogger(LOGGER).addHandler(handler)
    return handler


def reason_of(facts: dict[str, Any], exception: str, files: Files) -> str:
    """Return one line from a job's log, with the scheduler's words where it ran on a cluster."""
    logs, others = list(facts["log"])[:1], list(facts["log"])[1:]
    said = " ".join(LOOK_ELSEWHERE.sub("", facts["rule_msg"] or "").split())
    number = facts["aux"].get("external_jobid")
    if number is None and not said:
        return reason_of_crash(logs, exception, files)
    told = (reason_in_log(read_log(log, files)) for log in logs)
    own = next(filter(None, told), None) or refusal_on_node(others)
    said = with_setting(said) or f"job {number} of the scheduler failed"
    return f"{own} ({said})" if own else said


def refusal_on_node(logs: Iterable[str]) -> str | None:
    """Return why Snakemake on a node refused files, from the scheduler's logs; None if not."""
    texts = (Path(log).read_text(errors="replace") for log in logs if Path(log).is_file())
    return next((found.reason for found in map(refusal_in, texts) if found), None)


def with_setting(said: str) -> str:
    """Return the words of a scheduler that refused a job, with the setting that they are about."""
    if "sbatch" not in said:
        return said
    about = [setting for words, setting in ABOUT.items() if words in said.lower()]
    return f"{said} Set {about[0]}: see profiles/README.md" if about else said
