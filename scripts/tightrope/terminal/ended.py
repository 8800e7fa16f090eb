"""Why jobs ended, as Snakemake reports it: the words of the job, of the system or a scheduler."""

import logging
import re
from pathlib import Path
from typing import Any

from tightrope.terminal.file_times import refusal_in
from tightrope.terminal.job_files import files_of, read_log
from tightrope.terminal.jobs import reason_in_log, reason_of_crash
from tightrope.terminal.plugin import LOGGER

# what Snakemake adds to the words of a scheduler: a command of some kilobytes, where else to look
LOOK_ELSEWHERE = re.compile(r"\s*(sbatch call:|For further error details see the).*$", re.DOTALL)
# words of sbatch, in small letters, that refuse a job, and the value of a profile that decides it
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

    `reasons` are by number of the job, or by output where Snakemake refused it and gives no number.
    `ahead` are inputs that are newer than what was made from them.
    """

    def __init__(self, workflow: Any) -> None:
        """Listen to what Snakemake says of a workflow."""
        super().__init__()
        self.files, self.exception = files_of(workflow), ""
        self.reasons: dict[int | str, str] = {}
        self.ahead: set[str] = set()
        logging.getLogger(LOGGER).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the reason of a job that ended with an error; an error here never ends the run."""
        facts = record.__dict__
        try:
            if str(facts.get("event")) == "error":
                refusal = refusal_in(str(facts["msg"]))
                self.exception = "" if refusal else str(facts["msg"])
                if refusal:
                    self.reasons |= dict.fromkeys(refusal.files, refusal.reason)
                    self.ahead.update(filter(None, [refusal.newer]))
            elif str(facts.get("event")) == "job_error":
                for path in facts.get("output", ()):  # of an attempt before this one
                    self.reasons.pop(path, None)
                self.reasons[facts["jobid"]] = self.reason_in(facts)
                self.exception = ""
        except Exception:
            self.handleError(record)

    def reason_of(self, number: int, outputs: list[str]) -> str:
        """Return why the job with this number and these outputs ended."""
        found = (self.reasons[key] for key in (*outputs, number) if key in self.reasons)
        return next(found, "ended without a reason")

    def reason_in(self, facts: dict[str, Any]) -> str:
        """Return one line from a job's log, with a scheduler's words where it ran on a cluster."""
        said = " ".join(LOOK_ELSEWHERE.sub("", facts["rule_msg"] or "").split())
        number, (own, *others) = facts["aux"].get("external_jobid"), [*facts["log"]] or [""]
        if number is None and not said:
            return reason_of_crash([own], self.exception, self.files)
        about = [one for words, one in ABOUT.items() if "sbatch" in said and words in said.lower()]
        said += f" Set {about[0]}: see profiles/README.md" if about else ""
        said = said or f"job {number} of the scheduler failed"
        # in the others is why Snakemake on the node refused files
        texts = [Path(log).read_text(errors="replace") for log in others if Path(log).is_file()]
        refused = [refusal.reason for refusal in map(refusal_in, texts) if refusal]
        words = reason_in_log(read_log(own, self.files)) or next(iter(refused), None)
        return f"{words} ({said})" if words else said
