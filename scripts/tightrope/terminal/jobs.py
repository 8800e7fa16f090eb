"""Jobs of a run as the terminal names them, and how far the steps in them are."""

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

TAIL_BYTES = 4096
# a tqdm bar: `predicting:  40%|####      | 12/30 [00:08<00:12,  1.49chunk/s]`
BAR = re.compile(
    r"(?P<what>[^:\r\n|]+):\s+(?P<percent>\d+)%\|[^|]*\| *(?P<count>[\d.]+[kMG]?/[\d.]+[kMG]?)"
    r" \[[\d:]+<(?P<left>[\d:]+|\?)"
)


class Progress(NamedTuple):
    """Progress of a step in words, and the remaining seconds if known."""

    words: str
    left: float | None


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


def progress_in(path: Path | str, *, since: float = 0.0) -> Progress | None:
    """Return the progress from the last bar in the log: `predicting 40 %, 0:12 left`.

    None if the log has no bar, if its last bar is full (another step has begun), or if it was last
    written before `since` (`time.time()`), by an earlier run.
    """
    try:
        with Path(path).open("rb") as stream:
            if os.fstat(stream.fileno()).st_mtime < since:
                return None
            size = stream.seek(0, 2)
            stream.seek(max(0, size - TAIL_BYTES))
            tail = stream.read().decode(errors="replace")
    except OSError:
        return None
    bars = list(BAR.finditer(tail))
    if not bars or bars[-1]["percent"] == "100":
        return None
    what, percent, left = bars[-1]["what"].strip(), bars[-1]["percent"], bars[-1]["left"]
    words = f"{what} {percent} %"
    if left == "?":
        return Progress(words, None)
    return Progress(f"{words}, {left.removeprefix('0')} left", seconds_of(left))


def seconds_of(clock: str) -> float:
    """Convert `1:02:03` or `02:03` to seconds."""
    seconds = 0
    for part in clock.split(":"):
        seconds = 60 * seconds + int(part)
    return float(seconds)
