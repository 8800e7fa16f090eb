"""A job of a run as the terminal names it, and what a job that went wrong has to say."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tightrope.artifacts.failures import REASON, failure_in, is_onnx_file
from tightrope.errors import ArtifactError
from tightrope.terminal.progress_bars import Progress, progress_in

RECORDS = (".json", ".onnx")
# no record of a failure is as long, and a long one would be parsed for nothing
LARGEST_BYTES = 2**20
# a message of an exception of Python, at the end of its traceback
RAISED = re.compile(r"^[\w.]*[A-Za-z]\w*(Error|Exception|Interrupt|Exit)\b.*$")


@dataclass
class Job:
    """One job: its rule, what it is about (`tiny/cpu-pytorch-fp32`), its files and its start."""

    rule: str
    subject: str
    outputs: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    began: float = 0.0

    @property
    def words(self) -> str:
        """The rule in words."""
        return self.rule.replace("_", " ")

    def progress(self) -> Progress | None:
        """How far its step is, from its log; None where that does not say."""
        told = (progress_in(path) for path in self.logs)
        return next((one for one in told if one is not None), None)

    @property
    def key(self) -> str:
        """The name under which its seconds are kept."""
        return f"{self.rule} {self.subject}".strip()


def job_of(event: Mapping[str, Any], began: float) -> Job:
    """The job that an event of its start describes."""
    rule, wildcards = event["rule_name"], event["wildcards"]
    outputs, logs = list(event["output"]), list(event["log"])
    return Job(rule, subject_of(rule, wildcards), outputs, logs, began)


def subject_of(rule: str, wildcards: Mapping[str, str]) -> str:
    """Model and variant, then what else distinguishes jobs of that rule."""
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


def failure_of(outputs: Iterable[str]) -> str | None:
    """The reason in the first output that holds a failure, None where all were made."""
    for path in map(Path, outputs):
        if not may_hold_failure(path):
            continue
        try:
            failure = failure_in(path)
        except ArtifactError as error:
            return str(error)
        if failure is not None:
            return str(failure["reason"])
    return None


def may_hold_failure(path: Path) -> bool:
    """Whether it is worth while to parse the file: ONNX takes a library to be imported."""
    if path.suffix not in RECORDS or not path.is_file() or path.stat().st_size > LARGEST_BYTES:
        return False
    return not is_onnx_file(path) or REASON.encode() in path.read_bytes()


def reason_of_crash(logs: Iterable[str], exception: str) -> str:
    """One line on why a job ended with an error: from its log, else from the `exception`."""
    for path in map(Path, logs):
        if reason := reason_in_log(path):
            return reason
    lines = [line.strip() for line in exception.splitlines() if line.strip()]
    if not lines:
        return "ended with an error and left no reason"
    # the command line before it says nothing about the reason
    return re.sub(r"^Command .* (?=returned non-zero|died with)", "", lines[-1])


def reason_in_log(path: Path) -> str | None:
    """The error that ended a script, None where its log holds none."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        if line.startswith("error: "):
            return line.removeprefix("error: ")
        if RAISED.match(line):
            return line
    return None
