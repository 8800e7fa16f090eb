"""Jobs of a run as the terminal names them, and the reasons of failed jobs."""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tightrope.artifacts.failures import REASON, failure_in, is_onnx_file
from tightrope.errors import ArtifactError, TightropeError
from tightrope.terminal.file_times import refusal_in
from tightrope.terminal.job_files import Files, here, name_of, read_log
from tightrope.terminal.progress_bars import Progress, progress_in

RECORDS = (".json", ".onnx")
# failure records are smaller; larger files are not parsed
LARGEST_BYTES = 2**20
# what Snakemake says of a job that a signal ended
KILLED = re.compile(r"died with <Signals\.(\w+): \d+>")
# last line of a Python traceback
RAISED = re.compile(r"^[\w.]*[A-Za-z]\w*(Error|Exception|Interrupt|Exit)\b.*$")


@dataclass
class Job:
    """Job with its rule, subject (`tiny/cpu-pytorch-fp32`), files and start time."""

    rule: str
    subject: str
    outputs: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    began: float = 0.0

    @property
    def words(self) -> str:
        """Rule name in words."""
        return self.rule.replace("_", " ")

    def progress(self) -> Progress | None:
        """Return the progress of the job's step from its logs, None if they show none."""
        began = time.time() - (time.monotonic() - self.began)
        told = (progress_in(path, since=began) for path in self.logs)
        return next((one for one in told if one is not None), None)

    @property
    def key(self) -> str:
        """Key under which the job's seconds are stored."""
        return f"{self.rule} {self.subject}".strip()


def jobs_to_run(workflow: Any) -> list[Job]:
    """Return the planned jobs of a Snakemake workflow whose DAG is built."""
    return [
        Job(job.rule.name, subject_of(job.rule.name, job.wildcards_dict))
        for job in workflow.dag.needrun_jobs()
    ]


def job_of(event: Mapping[str, Any], began: float) -> Job:
    """Return the job that a job-start event describes."""
    rule, wildcards = event["rule_name"], event["wildcards"]
    outputs, logs = list(event["output"]), list(event["log"])
    return Job(rule, subject_of(rule, wildcards), outputs, logs, began)


def subject_of(rule: str, wildcards: Mapping[str, str]) -> str:
    """Return model and variant, then the other wildcards that distinguish the rule's jobs."""
    rest = dict(wildcards)
    model = rest.pop("model", "")
    variant = rest.pop("variant", "")
    if not variant and {"device", "rest"} <= rest.keys():
        engine = rule.removeprefix("build_")
        variant = f"{rest.pop('device')}-{engine}-{rest.pop('rest')}"
    others = "-".join(str(value) for value in rest.values())
    if variant:
        named = f"{model}/{variant}" if model else variant
        return f"{named} {others}".strip()
    return "/".join(part for part in (model, others) if part)


def failure_of(outputs: Iterable[str], files: Files = here) -> str | None:
    """Return the reason of the first output that records a failure, or None.

    It is fit for a terminal, whoever wrote the file.
    """
    for output in outputs:
        if not name_of(output).endswith(RECORDS):
            continue
        with files(output, LARGEST_BYTES) as path:
            reason = reason_in_record(path)
        if reason is not None:
            return str(TightropeError(reason.replace(str(path), name_of(output))))
    return None


def reason_in_record(path: Path) -> str | None:
    """Return the reason of the failure that a file records, or why it cannot be read."""
    if not may_hold_failure(path):
        return None
    try:
        failure = failure_in(path)
    except ArtifactError as error:
        return str(error)
    return None if failure is None else str(failure["reason"])


def may_hold_failure(path: Path) -> bool:
    """Return whether the file is worth parsing: an ONNX file requires importing a library."""
    if not path.is_file() or path.stat().st_size > LARGEST_BYTES:
        return False
    return not is_onnx_file(path) or REASON.encode() in path.read_bytes()


def reason_of_crash(logs: Iterable[str], exception: str, files: Files = here) -> str:
    """Return one line on why a job crashed: from its log, else from the `exception`."""
    for log in logs:
        if reason := reason_in_log(read_log(log, files)):
            return reason
    lines = [line.strip() for line in exception.splitlines() if line.strip()]
    if not lines:
        return "ended with an error and left no reason"
    if killed := KILLED.search(lines[-1]):
        return f"killed by {killed[1]} (out of memory, or from outside)"
    # remove the command line, which does not explain the error
    return re.sub(r"^Command .* (?=returned non-zero)", "", lines[-1])


def reason_in_log(text: str | None) -> str | None:
    """Return the error that ended a script, or a job on a node, None if the log has none.

    It is fit for a terminal, whoever wrote the log.
    """
    if text is None:
        return None
    if refusal := refusal_in(text):
        return refusal.reason
    lines = text.splitlines()
    for line in reversed(lines):
        if line.startswith("error: ") or RAISED.match(line):
            return str(TightropeError(line.removeprefix("error: ")))
    return None
